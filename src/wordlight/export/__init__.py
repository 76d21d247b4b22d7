"""What a run leaves behind: pictures, videos and meshes. On the host; every file is whole or not there."""

from wordlight.export.images import colourize_depth as colourize_depth
from wordlight.export.images import contact_sheet as contact_sheet
from wordlight.export.images import save_png as save_png
from wordlight.export.images import shade_normals as shade_normals
from wordlight.export.images import to_uint8 as to_uint8
from wordlight.export.mesh import Mesh as Mesh
from wordlight.export.mesh import extract_mesh as extract_mesh
from wordlight.export.mesh import save_mesh as save_mesh
from wordlight.export.video import write_video as write_video
