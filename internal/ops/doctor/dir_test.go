package doctor

import ()
