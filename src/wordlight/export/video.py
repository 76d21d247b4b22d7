"""Frames to a video file that plays everywhere: H.264, and what comes next where that fails."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from jaxtyping import ArrayLike

from wordlight.errors import WordlightError
from wordlight.export.files import replacing
from wordlight.export.images import save_png, to_uint8

if TYPE_CHECKING:
    from av import VideoStream

_CONTAINERS = (".mp4", ".mov", ".mkv", ".gif")


class Encoder(NamedTuple):
    """One way to write a video.

    Attributes:
        name: what to call it in messages.
        suffix: the suffix its files need, or None where that of the asked path will do.
        write: takes a path, an iterator over frames `[height, width, 3]` of bytes, and the frames per second.
    """

    name: str
    suffix: str | None
    write: Callable[[Path, Iterator[np.ndarray], float], None]


class WrittenVideo(NamedTuple):
    """What `write_video` made: the file, the encoder's name, and a line for each encoder that failed."""

    path: Path
    encoder: str
    failures: tuple[str, ...]


def _encode_av(
    path: Path, frames: Iterator[np.ndarray], fps: float, *, codec: str, options: dict[str, str]
) -> None:
    """Encode with FFmpeg's libraries into 4:2:0, which every player shows."""
    import av
    from av.video.reformatter import ColorRange, Colorspace

    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1001), options=options)
        stream = cast("VideoStream", stream)
        for index, frame in enumerate(map(_pad_to_even, frames)):
            if index == 0:
                stream.height, stream.width, stream.pix_fmt = *frame.shape[:2], "yuv420p"
                # Said in the file, since players guess the matrix from the size when it is not.
                stream.codec_context.colorspace = Colorspace.ITU601
                stream.codec_context.color_range = ColorRange.MPEG
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def _encode_gif(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    from PIL import Image

    first, *rest = (Image.fromarray(frame) for frame in frames)
    # The format counts hundredths of a second; players slow anything below two down.
    first.save(path, save_all=True, append_images=rest, duration=max(round(1000 / fps), 20), loop=0)


def _pad_to_even(frame: np.ndarray) -> np.ndarray:
    """Repeat the last row or column where needed: 4:2:0 halves both sides."""
    return np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode="edge")


H264 = Encoder("H.264", None, partial(_encode_av, codec="libx264", options={"crf": "17", "preset": "medium"}))
MPEG4 = Encoder("MPEG-4", None, partial(_encode_av, codec="mpeg4", options={"qmax": "4"}))
GIF = Encoder("GIF", ".gif", _encode_gif)


def write_video(
    path: str | os.PathLike[str],
    frames: Iterable[ArrayLike],
    *,
    fps: float = 24,
    encoders: Sequence[Encoder] = (H264, MPEG4, GIF),
) -> WrittenVideo:
    """Write frames as a video, with the first encoder that works.

    Frames are taken one at a time and wait on disk as PNG files in a folder beside the video, so their number
    is not limited by memory and no encoder's failure loses them; the folder goes once a video is whole. Sides
    of odd length grow by one repeated pixel.

    Args:
        path: an .mp4, .mov, .mkv or .gif file; another encoder than the first may have to change the suffix.
        frames: images `[height, width, 3]` of one size, floats in [0, 1] or bytes; a generator will do.
        fps: frames per second.
        encoders: what to try, in order. For a .gif path only those that write GIF are tried.

    Returns:
        The path that was written, the encoder's name, and why earlier ones failed.

    Raises:
        WordlightError: an impossible path, rate or frame; or every encoder failed, and the frames were kept.
    """
    path = Path(path)
    _check_request(path, fps)
    folder = _fresh_folder(path.with_name(f"{path.stem}_frames"))
    try:
        count = _spool(folder, frames)
    except BaseException:
        shutil.rmtree(folder)
        raise
    written = _try_encoders(path, partial(_read_spool, folder, count), fps, encoders)
    if isinstance(written, WrittenVideo):
        shutil.rmtree(folder)
        return written
    raise WordlightError(
        f"No encoder could write {path.name}: {'; '.join(written) or 'none was given for this suffix'}. "
        "A full disk or a build of FFmpeg without these encoders is the usual cause. "
        f"All {count} frames are kept as PNG files in {folder}: "
        "free some space or reinstall `av`, then encode them."
    )


def _check_request(path: Path, fps: float) -> None:
    if path.suffix.lower() not in _CONTAINERS:
        raise WordlightError(
            f"A video cannot be written to {path.name!r}: {path.suffix!r} is no container known here. "
            f"The suffix chooses the file format. Use one of {', '.join(_CONTAINERS)}."
        )
    if not 0 < fps <= 1000:
        raise WordlightError(
            f"{fps} frames per second is no rate: it has to be above 0 and at most 1000. "
            "A duration passed for a rate is the usual cause. Pass, for example, fps=24."
        )


def _fresh_folder(folder: Path) -> Path:
    """Make a folder of this name or the first numbered one that is free: an older one may hold frames."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    candidates = [folder, *(folder.with_name(f"{folder.name}_{number}") for number in range(2, 1000))]
    free = next(candidate for candidate in candidates if not candidate.exists())
    free.mkdir()
    return free


def _frame_path(folder: Path, index: int) -> Path:
    return folder / f"{index:05d}.png"


def _spool(folder: Path, frames: Iterable[ArrayLike]) -> int:
    """Write every frame into the folder and return how many there were."""
    count, shape = 0, None
    for frame in map(to_uint8, frames):
        shape = shape or frame.shape
        if frame.shape != shape or frame.ndim != 3 or frame.shape[2] != 3:
            raise WordlightError(
                f"Frame {count} has shape {frame.shape}, and the first has {shape}. "
                "Cameras of several sizes, or a batch passed as one frame, are the usual cause. "
                "Pass images [height, width, 3] of one size, one at a time."
            )
        save_png(_frame_path(folder, count), frame)
        count += 1
    if count == 0:
        raise WordlightError(
            "There are no frames to write. A generator that was used up before is the usual cause. "
            "Pass a list, or make the generator anew."
        )
    return count


def _read_spool(folder: Path, count: int) -> Iterator[np.ndarray]:
    from PIL import Image

    for index in range(count):
        with Image.open(_frame_path(folder, index)) as image:
            yield np.asarray(image)


def _try_encoders(
    path: Path, read: Callable[[], Iterator[np.ndarray]], fps: float, encoders: Sequence[Encoder]
) -> WrittenVideo | tuple[str, ...]:
    """Return the video that the first working encoder wrote, or why each failed."""
    failures: tuple[str, ...] = ()
    wants_gif = path.suffix.lower() == ".gif"
    for encoder in encoders:
        if wants_gif and encoder.suffix != ".gif":
            continue
        target = path.with_suffix(encoder.suffix) if encoder.suffix else path
        try:
            with replacing(target) as partial_path:
                encoder.write(partial_path, read(), fps)
            return WrittenVideo(target, encoder.name, failures)
        # Encoders fail in many ways, each library with its own class; whatever it is, the next one is tried.
        except Exception as error:
            failures += (f"{encoder.name}: {type(error).__name__}: {error}",)
    return failures
