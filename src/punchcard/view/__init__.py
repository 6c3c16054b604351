"""Looking at a run: pictures, pages, a debugger. Machines contribute only how a state is decoded."""
