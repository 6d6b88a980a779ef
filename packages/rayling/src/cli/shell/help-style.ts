/**
 * The looks of help texts. Commander removes colours where the output has none, and for NO_COLOR.
 */

import util from "node:util";
import type { HelpConfiguration } from "commander";

const bold = (text: string): string => util.styleText("bold", text, { validateStream: false });
const cyan = (text: string): string => util.styleText("cyan", text, { validateStream: false });

export const helpStyle: HelpConfiguration = {
  styleTitle: bold,
  styleCommandText: bold,
  styleSubcommandTerm: cyan,
  styleOptionTerm: cyan,
  styleArgumentTerm: cyan,
};
