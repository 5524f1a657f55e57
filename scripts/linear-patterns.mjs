import { createRequire } from 'node:module';
// Plain JavaScript; the package's main file would look for a Java runtime.
import recheck from 'recheck/lib/browser.js';

/** Counts steps, because recheck's own limits in milliseconds would call a pattern slow where the machine is. */
const LIMITS = {
  timeout: 300_000, // ends a hang; such a pattern is refused as unknown
  incubationTimeout: null,
  attackTimeout: null,
};

const verdicts = new Map();

function verdictOf({ pattern, flags }) {
  const key = `/${pattern}/${flags}`;
  if (!verdicts.has(key)) verdicts.set(key, recheck.checkSync(pattern, flags, LIMITS));
  return verdicts.get(key);
}

const RUN_TIME = 'No check can judge a pattern that is built at run time: write it as a literal.';

const rule = {
  create: (context) => ({
    'Literal[regex]': (node) => {
      const { status, complexity } = verdictOf(node.regex);
      const message = `${node.raw} takes more than linear time (${complexity?.summary ?? status}).`;
      if (status !== 'safe') context.report({ node, message });
    },
    ':matches(NewExpression, CallExpression)[callee.name="RegExp"]': (node) =>
      context.report({ node, message: RUN_TIME }),
  }),
};

/**
 * A plugin for ESLint. Each pattern must take time linear in what it reads, because two kilobytes for one that backtracks
 * would block the event loop for seconds. Its version is part of the key of ESLint's cache.
 */
export const linearPatterns = {
  meta: { name: 'linear-patterns', version: createRequire(import.meta.url)('recheck/package.json').version },
  rules: { linear: rule },
};
