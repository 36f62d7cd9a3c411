"""Data: factors -> observations. `load_data` takes a name from DATASETS or a path to the user's own data."""

from typing import TYPE_CHECKING

from unseam.lazy import lazy_names

if TYPE_CHECKING:
    from unseam.data.registry import DATASETS as DATASETS
    from unseam.data.registry import config as config
    from unseam.data.registry import dataset_type as dataset_type
    from unseam.data.registry import likelihood_options as likelihood_options
    from unseam.data.registry import load_config as load_config
    from unseam.data.registry import load_data as load_data
    from unseam.data.registry import own_parameters as own_parameters
    from unseam.data.registry import parameters as parameters
    from unseam.data.registry import typed_options as typed_options
    from unseam.data.user import UserData as UserData
else:  # not at once: all of them need torch, modules beside them do not
    _names = (
        "DATASETS config dataset_type load_config load_data own_parameters parameters likelihood_options typed_options"
    )
    __getattr__ = lazy_names(
        __name__, {"UserData": "unseam.data.user", **dict.fromkeys(_names.split(), "unseam.data.registry")}
    )
