// Create the app, and mount every view at its place.

import { App } from "./app.js";
import { mount as changes } from "./views/changes.js";
import { mount as composer } from "./views/composer.js";
import { mount as focus } from "./views/focus.js";
import { mount as header } from "./views/header.js";
import { mount as keys } from "./views/keys.js";
import { mount as nameAsk } from "./views/name_ask.js";
import { mount as notice } from "./views/notice.js";
import { mount as questions } from "./views/questions.js";
import { mount as notifications } from "./views/notifications.js";
import { mount as queue } from "./views/queue.js";
import { mount as recent } from "./views/recent.js";
import { mount as sessions } from "./views/sessions.js";
import { mount as side } from "./views/side.js";
import { mount as starting } from "./views/starting.js";
import { mount as theme } from "./views/theme.js";
import { mount as toasts } from "./views/toasts.js";
import { mount as transcript } from "./views/transcript/transcript.js";

const PLACES = { notice, toasts, bar: header, sessions, transcript, questions, queue, composer, side };

const app = new App();
globalThis.antiphon = app; // for the console and for tests
for (const [id, mount] of Object.entries(PLACES)) mount(app, document.getElementById(id));
changes(app, document.getElementById("transcript"));
for (const mount of [recent, starting, nameAsk]) mount(app, document.getElementById("main"));
for (const mount of [theme, keys, focus, notifications]) mount(app, document.getElementById("page"));
app.start();
