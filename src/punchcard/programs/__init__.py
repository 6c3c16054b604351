"""The paper's algorithms as FLEQ programs."""
