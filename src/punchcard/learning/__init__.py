"""Machine learning on the FLEQ machine: gradient descent, backpropagation and predictions run on the transformer."""

from punchcard.learning.model import Model, Scaling
from punchcard.learning.planning import LearningPlan, plan
from punchcard.learning.programs.rules import Activation, Entrywise, Loss, by_indicator, huber
from punchcard.learning.training import Learned, Prediction, Stage, learn, predict

__all__ = ["Activation", "Entrywise", "Learned", "LearningPlan", "Loss", "Model", "Prediction", "Scaling", "Stage",
           "by_indicator", "huber", "learn", "plan", "predict"]
