"""Workers for parallel work: processes of this computer, or actors of a Ray cluster, as one kind of executor."""
