"""Workers for what can be done apart: processes of this computer, or actors of a Ray cluster, as one kind of executor."""
