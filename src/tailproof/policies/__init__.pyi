# Written by `make stubs` from the files of tailproof.policies: do not edit.

from tailproof.policies.abe_long import AbeLong
from tailproof.policies.ada_r_ucb import AdaRUCB
from tailproof.policies.ape2 import APE2
from tailproof.policies.base import Policy
from tailproof.policies.baselines import FixedArm
from tailproof.policies.baselines import Uniform
from tailproof.policies.clipped_sgd import ClippedSGDUCB
from tailproof.policies.confidence_ball import ConfidenceBall
from tailproof.policies.crt import CRT
from tailproof.policies.end_of_optimism import EndOfOptimism
from tailproof.policies.forgetting_ucb import DiscountedUCB
from tailproof.policies.forgetting_ucb import SlidingWindowUCB
from tailproof.policies.heavy_oful import HeavyOFUL
from tailproof.policies.htinf import HTINF
from tailproof.policies.huber_bandit import HuberBandit
from tailproof.policies.hvt_ucb import HvtUCB
from tailproof.policies.kl_inf_ucb import KLInfUCB
from tailproof.policies.lin_revenue_ucb import LinRevenueUCB
from tailproof.policies.lin_student_ucb import LinStudentUCB
from tailproof.policies.lin_ts import LinTS
from tailproof.policies.median_ucb import MedianUCB
from tailproof.policies.menu import MENU
from tailproof.policies.mom import MoM
from tailproof.policies.oful import OFUL
from tailproof.policies.order_statistic_ucb import OrderStatisticUCB
from tailproof.policies.ossb import OSSB
from tailproof.policies.pege import PEGE
from tailproof.policies.revenue_ucb import RevenueUCB
from tailproof.policies.rmm_ucb import RMMUCB
from tailproof.policies.robust_moss import RobustMOSS
from tailproof.policies.robust_ucb import RobustUCB
from tailproof.policies.stable_ts import StableTS
from tailproof.policies.state.base import State
from tailproof.policies.sup_bmm import SupBMM
from tailproof.policies.sup_btc import SupBTC
from tailproof.policies.sup_lin_rel import SupLinRel
from tailproof.policies.sup_lin_ucb import SupLinUCB
from tailproof.policies.symmetric_oful import SymmetricOFUL
from tailproof.policies.thompson import ThompsonSampling
from tailproof.policies.tofu import TOFU
from tailproof.policies.ucb1 import UCB1

__all__ = [
    "APE2",
    "AbeLong",
    "AdaRUCB",
    "CRT",
    "ClippedSGDUCB",
    "ConfidenceBall",
    "DiscountedUCB",
    "EndOfOptimism",
    "FixedArm",
    "HTINF",
    "HeavyOFUL",
    "HuberBandit",
    "HvtUCB",
    "KLInfUCB",
    "LinRevenueUCB",
    "LinStudentUCB",
    "LinTS",
    "MENU",
    "MedianUCB",
    "MoM",
    "OFUL",
    "OSSB",
    "OrderStatisticUCB",
    "PEGE",
    "Policy",
    "RMMUCB",
    "RevenueUCB",
    "RobustMOSS",
    "RobustUCB",
    "SlidingWindowUCB",
    "StableTS",
    "State",
    "SupBMM",
    "SupBTC",
    "SupLinRel",
    "SupLinUCB",
    "SymmetricOFUL",
    "TOFU",
    "ThompsonSampling",
    "UCB1",
    "Uniform",
]
