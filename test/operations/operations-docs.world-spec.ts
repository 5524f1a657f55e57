import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { load } from 'js-yaml';
import { DECISION_KINDS } from '../../src/operations/overview/decisions.js';
import { useWorld } from '../world/use-world.js';

/** All metrics: the reference is generated from the code. */
const declared = [
  ...readFileSync('docs/reference/metrics.md', 'utf8').matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| /gm),
].map(([, name = '', type, labels = '']) => ({ name, type, labelNames: labels.match(/\w+/g) ?? [] }));

interface Alert {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { runbook_url: string };
}

const alerts = (
  load(readFileSync('docs/operations/alerts.yml', 'utf8')) as { groups: { rules: Alert[] }[] }
).groups.flatMap(({ rules }) => rules);

interface Board {
  panels: { title: string; targets?: { expr: string }[] }[];
}
const { panels } = JSON.parse(readFileSync('docs/operations/grafana.json', 'utf8')) as Board;
const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];

/** The metrics and labels that an expression names, and how many errors the grammar of PromQL finds in it. */
function read(expr: string): { metrics: string[]; labels: string[]; errors: number } {
  const found = { metrics: [] as string[], labels: [] as string[], errors: 0 };
  parser.parse(expr).iterate({
    enter({ type, from, to }) {
      const text = expr.slice(from, to);
      if (type.isError) found.errors += 1;
      else if (type.name === 'Identifier') found.metrics.push(text);
      else if (type.name === 'LabelName') found.labels.push(text);
    },
  });
  return found;
}

/** A label of a series, and what an expression asks of it. */
interface Matcher {
  label: string;
  operator: string;
  value: string;
}

interface Series {
  name: string;
  labels: Record<string, string>;
}

/** The series that an expression reads: one for each alternative of a regular expression. */
function selected(expr: string): { name: string; matchers: Matcher[] }[] {
  const found: { name: string; matchers: Matcher[] }[] = [];
  parser.parse(expr).iterate({
    enter({ type, from, to }) {
      const text = expr.slice(from, to);
      const last = found.at(-1);
      if (type.name === 'VectorSelector') found.push({ name: /^\w*/.exec(text)?.[0] ?? '', matchers: [] });
      if (type.name !== 'UnquotedLabelMatcher' || !last) return;
      const [, label = '', operator = '', value = ''] = /^(\w+)([=!~]+)"(.*)"$/.exec(text) ?? [];
      last.matchers.push({ label, operator, value });
    },
  });
  return found.flatMap(({ name, matchers }) => {
    const wanted = matchers.find(({ operator }) => operator === '=~');
    if (!wanted) return [{ name, matchers }];
    const others = matchers.filter((matcher) => matcher !== wanted);
    return wanted.value.split('|').map((value) => ({ name, matchers: [...others, { ...wanted, value }] }));
  });
}

function isMet({ labels }: Series, { label, operator, value }: Matcher): boolean {
  const has = labels[label] ?? '';
  const isEqual = operator.includes('~') ? new RegExp(`^(?:${value})$`).test(has) : has === value;
  return isEqual !== operator.startsWith('!');
}

const world = useWorld();

/** The series of a service to which nothing has happened yet. */
async function firstSeries(): Promise<Series[]> {
  await world.restart();
  await world.settle();
  const { text } = await world.call('GET', '/metrics');
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? /gm)].map(([, name = '', labels = '']) => ({
    name,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value])),
  }));
}

const ofPrometheus = new Set(['up', 'job', 'instance', 'le']);

const alertExpressions = alerts.map(({ alert, expr }) => [alert, expr] as const);

test('every alert and panel is PromQL over existing metrics and labels', () => {
  for (const [name, expr] of expressions) {
    const { metrics, labels, errors } = read(expr);
    expect([name, errors, metrics.length > 0]).toEqual([name, 0, true]);
    const own = metrics.filter((each) => !ofPrometheus.has(each));
    for (const metric of own) {
      const base = declared.find(
        (each) => each.name === metric.replace(/_(bucket|sum|count)$/, '') || each.name === metric,
      );
      expect([metric, base && base.type === 'histogram']).toEqual([metric, /_(bucket|sum|count)$/.test(metric)]);
    }
    const used = declared.filter((each) => metrics.some((metric) => metric.startsWith(each.name)));
    const allowed = new Set([...ofPrometheus, ...used.flatMap(({ labelNames }) => labelNames)]);
    expect([name, labels.filter((label) => !allowed.has(label))]).toEqual([name, []]);
  }
  expect(read('sum(rate(x[5m]) > 3 and').errors).toBeGreaterThan(0);
});

// A series that begins with its first event has no increase then, and an absent one is never over or under anything.
test('every series of an alert exists before anything has happened', async () => {
  const series = await firstSeries();
  for (const [name, expr] of alertExpressions) {
    const wanted = selected(expr).filter((each) => !ofPrometheus.has(each.name));
    expect([name, wanted.length > 0]).toEqual([name, true]);
    const exists = ({ name: metric, matchers }: (typeof wanted)[number]) =>
      series.some((each) => each.name === metric && matchers.every((matcher) => isMet(each, matcher)));
    expect([name, wanted.filter((each) => !exists(each))]).toEqual([name, []]);
    // A service that is younger has no series of that moment.
    for (const [offset] of expr.matchAll(/ offset .*/g)) expect(offset).toMatch(/^ offset \w+\)+ or vector\(0\)/);
  }
});

test('every alert has its entry in the run-books, and every entry its alert', () => {
  const book = readFileSync('docs/operations/run-books.md', 'utf8');
  const [, entries = ''] = book.split('\n# Alerts\n');
  const [ofAlerts = ''] = entries.split('\n# ');
  const titles = [...ofAlerts.matchAll(/^## (\w+)$/gm)].map(([, title]) => title);
  expect(titles).toEqual(alerts.map(({ alert }) => alert));
  for (const { alert, annotations, labels } of alerts) {
    expect(annotations.runbook_url).toMatch(new RegExp(`docs/operations/run-books\\.md#${alert.toLowerCase()}$`));
    expect(['page', 'ticket']).toContain(labels.severity);
  }
});

test('each kind of pending decision has a gauge and an alert', async () => {
  const series = (await firstSeries()).filter(({ name }) => name === 'notebridge_awaiting_decision');
  expect(series.map(({ labels }) => labels.kind)).toEqual(DECISION_KINDS);
  const { expr } = alerts.find(({ alert }) => alert === 'NotebridgeAwaitsDecision') as Alert;
  const matchers = selected(expr).flatMap((each) => each.matchers);
  const without = series.filter((each) => !matchers.every((matcher) => isMet(each, matcher)));
  // The first has its own alert, the second is optional.
  expect(without.map(({ labels }) => labels.kind)).toEqual(['delivery-dead', 'import-dry-run']);
});
