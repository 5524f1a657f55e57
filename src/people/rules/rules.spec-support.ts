import { abandon, applyAnswer, applyCall, applyLate, secondUserOf } from './apply-answer.js';
import { nextStep } from './next-step.js';
import { applyLink, applyResolve, refusalOf, resolveChoices } from './resolve-rule.js';

/** The rules of people. A test replaces one to show that it would notice a broken one. */
export const RULES = {
  ...{ nextStep, applyCall, applyAnswer, applyLate, abandon, secondUserOf },
  ...{ applyLink, applyResolve, refusalOf, resolveChoices },
};

export type Rules = typeof RULES;
