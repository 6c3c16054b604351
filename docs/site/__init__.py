"""What MkDocs needs beside the pages: `make docs`."""
