// A worker of the page's own, as docs/workers.md has one; workers know no import maps.

import "/pkg/dist/worker-script.js";
