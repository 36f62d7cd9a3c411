"""What names mean, known without loading a data set (and without torch)."""

from typing import Literal

DATASET_CLASSES = {  # name: module:class
    "cars3d": "unseam.data.archives.cars3d:Cars3D",
    "celeba": "unseam.data.archives.celeba:CelebA",
    "digits": "unseam.data.images:Digits",
    "dsprites": "unseam.data.archives.dsprites:DSprites",
    "faces": "unseam.data.sets.faces:Faces",
    "fashion-mnist": "unseam.data.sets.idx:FashionMnist",
    "manifolds": "unseam.data.sets.manifolds:Manifolds",
    "mnist": "unseam.data.sets.idx:Mnist",
    "mpi3d": "unseam.data.archives.mpi3d:Mpi3D",
    "ring": "unseam.data.sets.synthetic:Ring",
    "rooms": "unseam.data.sets.rooms:Rooms",
    "shapes3d": "unseam.data.archives.shapes3d:Shapes3D",
    "smallnorb": "unseam.data.archives.smallnorb:SmallNorb",
    "sprites": "unseam.data.sets.sprites:Sprites",
    "synth-linear": "unseam.data.sets.synthetic:SynthLinear",
    "synth-nonlinear": "unseam.data.sets.synthetic:SynthNonlinear",
}
DataScale = Literal["none", "standard", "unit"]  # of the columns of a table
PATHS = ("background", "factors", "path")  # parameters that name files
DRAWN = "made"  # the background that we draw ourselves
PERTURBED = "perturbed.json"  # a folder that has it is a perturbed data set
