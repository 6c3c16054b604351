"""One thread for matrices, here and in processes that tests start: NumPy's second one took a sixth of the time to wait.

Libraries read this when they are loaded, so it is before all imports of tests.
"""

import os

os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
