from simulation.search import *
import sys
