"""Views of a run: the session behind every view, the page and its server, and one HTML file with all of it."""
