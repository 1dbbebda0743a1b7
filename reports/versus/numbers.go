package versus

import "floodproof/reports/wording"

// none stands where nothing was measured. It is never a 0.
const none = wording.None
