import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeBy } from "../judge.ts";

test("the judge's word is the score, and its reason stays", async () => {
  const questions: string[] = [];
  const judge = judgeBy(async ({ messages }) => {
    questions.push(messages.map(({ content }) => content).join("\n"));
    return { text: `{ "reason": "The words say so.", "choice": "right" }` };
  });
  const { score, reason } = await judge({ answer: "forty-two", truth: "42" });
  assert.deepEqual({ score, reason }, { score: 1, reason: "The words say so." });
  assert.match(questions.join(), /forty-two/);
});

test("an answer that is no use is asked again", async () => {
  const texts = ["I think so.", `{ "reason": "No.", "choice": "wrong" }`];
  const judge = judgeBy(async () => ({ text: texts.shift() ?? "" }));
  const { score, asked } = await judge({ answer: "forty", truth: "42" });
  assert.deepEqual({ score, asked }, { score: 0, asked: 2 });
});
