// The script of workers that sessions live in: each message that asks for a session opens one.

import { connect } from "./hosted-session.js";

addEventListener("message", ({ data }: MessageEvent) => connect(data));
