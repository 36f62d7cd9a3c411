// Starts the page.

import { App } from "/app.js";
import { byId, notice, room } from "/dom.js";
import { listen } from "/keys.js";
import { copyLink } from "/save.js";

const app = new App();
const actions = {
  previous: () => app.step(-1),
  next: () => app.step(1),
  random: () => app.random(),
  draw: () => app.draw(),
  choose: () => byId("file").click(),
  undo: () => app.undo(),
  redo: () => app.redo(),
  reset: () => app.reset(),
  latents: () => app.axis("latents"),
  singular: () => app.axis("singular"),
  align: () => app.align(),
  compare: () => app.beside(),
  link: () => app.link(),
  between: () => app.way.toggle(),
  dismiss: () => notice(""),
  share: copyLink,
  help: () => byId("keys").showModal(),
};
listen(app, actions);
room();
app.begin().catch((error) => notice(error.message, true));
