"""The functions that stand beside the optimizer classes, in one place."""

from facula.optim.adadelta import adadelta as adadelta
from facula.optim.adagrad import adagrad as adagrad
from facula.optim.adam import adam as adam
from facula.optim.adamax import adamax as adamax
from facula.optim.adamw import adamw as adamw
from facula.optim.asgd import asgd as asgd
from facula.optim.nadam import nadam as nadam
from facula.optim.radam import radam as radam
from facula.optim.rmsprop import rmsprop as rmsprop
from facula.optim.rprop import rprop as rprop
from facula.optim.sgd import sgd as sgd
