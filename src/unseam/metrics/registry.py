"""METRICS: one row a metric. A new metric is one file and one row here."""

from functools import partial

from unseam.metrics.base import Metric
from unseam.metrics.beta_vae import compute_beta_vae
from unseam.metrics.dci import compute_completeness, compute_disentanglement, compute_informativeness
from unseam.metrics.dcimig import compute_dcimig
from unseam.metrics.downstream import SIZES, Model, compute_downstream, compute_efficiency
from unseam.metrics.ds import compute_ds
from unseam.metrics.explicitness import compute_explicitness
from unseam.metrics.factor_vae import compute_factor_vae
from unseam.metrics.infomec import compute_infoc, compute_infoe, compute_infom
from unseam.metrics.irs import compute_irs
from unseam.metrics.mcc import compute_mcc, compute_mcc_spearman
from unseam.metrics.mig import compute_mig, compute_mig_sup
from unseam.metrics.modularity import compute_modularity
from unseam.metrics.partition import compute_partition
from unseam.metrics.rmig import compute_jemmig, compute_rmig
from unseam.metrics.sap import compute_sap, compute_sap_r2
from unseam.metrics.unsupervised import (
    compute_code_mi,
    compute_gaussian_tc,
    compute_gaussian_tc_sampled,
    compute_wasserstein,
    compute_wasserstein_norm,
)

INF = float("inf")
LOCATELLO = "Locatello et al. 2019, arXiv:1811.12359"
EASTWOOD = "Eastwood & Williams 2018, openreview By-7dz-AZ"
HSU = "Hsu et al. 2023, arXiv:2305.18378"
DO = "Do & Tran 2020, arXiv:1908.09961"

MODELS: tuple[tuple[Model, str], ...] = (("logistic", "logistic regression"), ("trees", "a set of boosted trees"))

ROWS = [
    Metric(
        "mig",
        compute_mig,
        "Is each factor held by exactly one latent?",
        "Chen et al. 2018, arXiv:1802.04942",
        ceiling="1; less for a factor with more values than bins (20)",
    ),
    Metric(
        "mig-sup",
        compute_mig_sup,
        "Does each latent hold exactly one factor?",
        "Li et al. 2020, arXiv:2002.10549",
        ceiling="the share of latents that hold a factor (a latent without one counts 0)",
    ),
    Metric(
        "rmig",
        compute_rmig,
        "Is each factor held by exactly one latent, the posterior's noise counted?",
        DO,
        ceiling="as mig",
    ),
    Metric(
        "jemmig",
        compute_jemmig,
        "Is each factor held by one latent that holds nothing else?",
        DO,
        ceiling="as mig",
    ),
    Metric(
        "dcimig",
        compute_dcimig,
        "Does each factor have a latent of its own that holds it alone?",
        "Sepliarskaia et al. 2020, arXiv:1910.05587",
        ceiling="as mig",
    ),
    Metric(
        "sap",
        compute_sap,
        "How much better than the second is the best latent at predicting each factor?",
        "Kumar et al. 2018, arXiv:1711.00848",
        range=(0.0, 1.0),
        ceiling="1 - chance for two classes; far less for many, which one line cannot separate",
    ),
    Metric(
        "sap-r2",
        compute_sap_r2,
        "The same by squared correlation, for factors with an order.",
        "Kumar et al. 2018, arXiv:1711.00848",
        ceiling="1 if the code is linear in the factor",
    ),
    Metric(
        "modularity",
        compute_modularity,
        "Does each latent depend on one factor only?",
        "Ridgeway & Mozer 2018, arXiv:1802.05312",
        ceiling="1; noise scores about 0.7, so read it beside explicitness",
    ),
    Metric(
        "explicitness",
        compute_explicitness,
        "Can a linear classifier read each value of each factor from the code?",
        "Ridgeway & Mozer 2018, arXiv:1802.05312",
        ceiling="1; 0.5 is chance",
    ),
    Metric(
        "dci-disentanglement",
        compute_disentanglement,
        "Does each latent serve one factor?",
        EASTWOOD,
        cheap=False,
    ),
    Metric("dci-completeness", compute_completeness, "Does each factor need one latent only?", EASTWOOD, cheap=False),
    Metric(
        "dci-informativeness",
        compute_informativeness,
        "How well do boosted trees predict the factors from the whole code?",
        EASTWOOD,
        cheap=False,
    ),
    Metric(
        "irs",
        compute_irs,
        "Does a latent stay put while all factors but its own change?",
        "Suter et al. 2019, arXiv:1811.00007",
        ceiling="1 if every latent is a function of one factor; unused noisy latents lower it",
    ),
    Metric(
        "beta-vae",
        compute_beta_vae,
        "Can a linear classifier tell which factor two observations share?",
        "Higgins et al. 2017, openreview Sy2fzU9gl",
        ceiling="1, reached already when all factors but one are held",
    ),
    Metric(
        "factor-vae",
        compute_factor_vae,
        "When one factor is held fixed, does the same latent always vary least?",
        "Kim & Mnih 2018, arXiv:1802.05983",
    ),
    Metric(
        "ds",
        compute_ds,
        "The gap between the two latents that predict a factor best, by nearest neighbours.",
        "Zietlow 2022, eq. 3.32-3.37",
        range=(0.0, INF),
        ceiling="1 for continuous factors; C - 1 for C equally frequent classes, as printed",
    ),
    Metric("infom", compute_infom, "What share of a latent's information is about one factor?", HSU),
    Metric("infoe", compute_infoe, "How much of each factor can a linear model read from the code?", HSU),
    Metric("infoc", compute_infoc, "What share of the information on a factor is in one latent?", HSU),
    Metric(
        "mcc",
        compute_mcc,
        "Are the factors the latents, up to order, sign and scale?",
        "Hyvarinen & Morioka 2016, arXiv:1605.06336",
        ceiling="1 if the code is linear in the factors",
    ),
    Metric(
        "mcc-spearman",
        compute_mcc_spearman,
        "Are the factors the latents, up to order and monotone warps?",
        "Hyvarinen & Morioka 2016, arXiv:1605.06336",
    ),
    Metric(
        "partition-information",
        compute_partition,
        "Which group of factors does each latent hold, and how many nats of it?",
        "Vu 2024, eq. 4-6",
        range=(0.0, INF),
        ceiling="none: nats grow with the precision of the code",
    ),
    *(
        Metric(
            f"downstream-{model}-{labels}",
            partial(compute_downstream, model=model, labels=labels),
            f"How accurate is {about} fitted on {labels} labels?",
            LOCATELLO,
            cheap=model == "logistic",
        )
        for model, about in MODELS
        for labels in SIZES
    ),
    *(
        Metric(
            f"efficiency-{model}",
            partial(compute_efficiency, model=model),
            "How much of the accuracy at 10,000 labels is there at 100?",
            LOCATELLO,
            range=(0.0, INF),
            ceiling="about 1",
            cheap=model == "logistic",
        )
        for model, _ in MODELS
    ),
    *(
        Metric(name, compute, question, LOCATELLO, range=(0.0, INF), direction="lower", ceiling="0", supervised=False)
        for name, compute, question in (
            ("gaussian-tc", compute_gaussian_tc, "Are the mean codes uncorrelated? Total correlation in nats."),
            ("gaussian-tc-sampled", compute_gaussian_tc_sampled, "Are the sampled codes uncorrelated?"),
            ("wasserstein-dependency", compute_wasserstein, "Are the codes uncorrelated? A distance."),
            ("wasserstein-dependency-norm", compute_wasserstein_norm, "That distance over the total variance."),
            ("code-mutual-information", compute_code_mi, "Do pairs of latents share information? Nats."),
        )
    ),
]
METRICS: dict[str, Metric] = {row.name: row for row in ROWS}
