import { applyAnswer, applyLate } from './apply-answer.js';
import { abandon, applyCall } from './apply-call.js';
import { nextStep } from './next-step.js';
import { withNextUser } from './person.js';
import { applyEvent, applyLink, applyResolve, refusalOf, resolveChoices } from './resolve-rule.js';

/** The rules of people. A test replaces one to show that it would notice a broken one. */
export const RULES = {
  ...{ nextStep, applyCall, applyAnswer, applyLate, abandon },
  ...{ applyEvent, applyLink, applyResolve, refusalOf, resolveChoices, withNextUser },
};

export type Rules = typeof RULES;
