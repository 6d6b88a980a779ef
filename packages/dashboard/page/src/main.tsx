/** Starts the page: the rooms that this server has, and the one that the address names. */
import { render } from "preact";
import { App } from "./app.tsx";

render(<App />, document.body);
