"""Videos: they read back as what went in, and no failure of an encoder loses a frame."""

import av
import numpy as np
import pytest
from PIL import Image

from wordlight.errors import WordlightError
from wordlight.export.video import GIF, H264, MPEG4, Encoder, write_video


def ramp(index: int, height: int = 48, width: int = 64) -> np.ndarray:
    """A smooth picture that moves, so that a lossy codec keeps it."""
    x = np.linspace(0, 1, width)[None, :] + np.zeros((height, 1))
    y = np.linspace(0, 1, height)[:, None] + np.zeros((1, width))
    return np.stack([x, y, np.full_like(x, index / 12)], axis=-1).astype(np.float32)


def decode(path) -> tuple[np.ndarray, float, str, str]:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(stream)])
        codec = stream.codec_context
        return frames, float(stream.average_rate or 0), codec.name, codec.pix_fmt or ""


def fail_after_three(path, frames, fps):
    path.write_bytes(b"half a video")
    for _ in range(3):
        next(frames)
    raise OSError("encoder stopped")


BROKEN = Encoder("Broken", None, fail_after_three)


def test_frames_read_back(tmp_path):
    frames = [ramp(index) for index in range(10)]
    written = write_video(tmp_path / "out" / "turntable.mp4", iter(frames), fps=24)
    assert written == (tmp_path / "out" / "turntable.mp4", "H.264", ())
    decoded, rate, codec, pixels = decode(written.path)
    assert (len(decoded), rate, codec, pixels) == (10, 24.0, "h264", "yuv420p")
    assert np.abs(decoded / 255 - np.stack(frames)).mean() < 0.01
    assert list(written.path.parent.iterdir()) == [written.path]


@pytest.mark.parametrize("encoder", [H264, MPEG4], ids=lambda encoder: encoder.name)
def test_odd_sizes_are_padded_to_even(tmp_path, encoder):
    frames = [ramp(index, height=67, width=101) for index in range(4)]
    written = write_video(tmp_path / "odd.mp4", frames, encoders=[encoder])
    decoded = decode(written.path)[0]
    assert decoded.shape == (4, 68, 102, 3)
    assert np.abs(decoded[:, :67, :101] / 255 - np.stack(frames)).mean() < 0.02
    assert np.abs(decoded[:, 67].astype(int) - decoded[:, 66]).max() < 24


def test_the_smallest_frame_is_written(tmp_path):
    assert decode(write_video(tmp_path / "dot.mp4", [np.zeros((1, 1, 3))]).path)[0].shape == (1, 2, 2, 3)


def test_bytes_are_frames_too(tmp_path):
    written = write_video(tmp_path / "bytes.mp4", [np.full((16, 16, 3), 200, np.uint8)] * 3)
    assert np.abs(decode(written.path)[0].astype(int) - 200).max() <= 2


def test_the_next_encoder_starts_from_the_first_frame(tmp_path):
    frames = (ramp(index) for index in range(8))
    written = write_video(tmp_path / "video.mp4", frames, encoders=[BROKEN, MPEG4])
    assert written.encoder == "MPEG-4"
    assert written.failures == ("Broken: OSError: encoder stopped",)
    decoded, _, codec, _ = decode(written.path)
    assert (len(decoded), codec) == (8, "mpeg4")
    assert list(tmp_path.iterdir()) == [written.path]


def test_a_gif_is_what_comes_last(tmp_path):
    frames = [ramp(index) for index in range(5)]
    written = write_video(tmp_path / "video.mp4", frames, fps=20, encoders=[BROKEN, GIF])
    assert written.path == tmp_path / "video.gif"
    with Image.open(written.path) as image:
        assert image.n_frames == 5  # pyright: ignore[reportAttributeAccessIssue]
        assert image.info["duration"] == 50
        assert image.size == (64, 48)


def test_a_gif_path_gets_a_gif(tmp_path):
    written = write_video(tmp_path / "video.gif", [ramp(0), ramp(9)])
    assert (written.path.suffix, written.encoder, written.failures) == (".gif", "GIF", ())


def test_when_all_fail_the_frames_are_kept(tmp_path):
    with pytest.raises(WordlightError) as caught:
        write_video(tmp_path / "video.mp4", (ramp(index) for index in range(7)), encoders=[BROKEN, BROKEN])
    folder = tmp_path / "video_frames"
    assert str(caught.value) == (
        "No encoder could write video.mp4: "
        "Broken: OSError: encoder stopped; Broken: OSError: encoder stopped. "
        "A full disk or a build of FFmpeg without these encoders is the usual cause. "
        f"All 7 frames are kept as PNG files in {folder}: "
        "free some space or reinstall `av`, then encode them."
    )
    assert sorted(path.name for path in folder.iterdir()) == [f"{index:05d}.png" for index in range(7)]
    assert list(tmp_path.iterdir()) == [folder]


def test_kept_frames_are_not_overwritten(tmp_path):
    for _ in range(2):
        with pytest.raises(WordlightError, match="frames are kept"):
            write_video(tmp_path / "video.mp4", [ramp(0)], encoders=[BROKEN])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["video_frames", "video_frames_2"]


def test_an_older_video_outlives_a_failure(tmp_path):
    path = tmp_path / "video.mp4"
    path.write_text("older")
    with pytest.raises(WordlightError):
        write_video(path, [ramp(0)], encoders=[BROKEN])
    assert path.read_text() == "older"


def break_while_rendering():
    yield ramp(0)
    raise KeyboardInterrupt


def test_a_failure_while_rendering_passes_through(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_video(tmp_path / "video.mp4", break_while_rendering())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "frames", "fps", "message"),
    [
        ("video.webp", [ramp(0)], 24, r"'\.webp' is no container known here.*Use one of \.mp4"),
        ("video.mp4", [ramp(0)], 0, "0 frames per second is no rate.*fps=24"),
        ("video.mp4", [ramp(0)], float("nan"), "nan frames per second"),
        ("video.mp4", [], 24, "There are no frames.*used up before.*make the generator anew"),
        (
            "video.mp4",
            [ramp(0), ramp(0, height=50)],
            24,
            r"Frame 1 has shape \(50, 64, 3\), and the first has",
        ),
        ("video.mp4", [np.zeros((4, 4))], 24, r"Frame 0 has shape \(4, 4\).*one at a time"),
    ],
)
def test_impossible_requests_are_refused(tmp_path, name, frames, fps, message):
    with pytest.raises(WordlightError, match=message):
        write_video(tmp_path / name, frames, fps=fps)
    assert list(tmp_path.iterdir()) == []
