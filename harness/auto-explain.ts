import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import type { PlanNode } from './query-plans.js';

/** A statement that the server ran, with its plan. */
export interface LoggedPlan {
  readonly text: string;
  readonly plan: PlanNode;
}

/** application_name of sessions whose plans are ignored. */
export const OBSERVER = 'observer';

/** Minimum share of plans that must be parsed. Some entries are mixed, but most statements are logged often. */
const MIN_PARSED = 0.8;

/** Makes the server log the plan of each statement in new sessions. @param admin a superuser's pool @param analyse logs the rows that each node read */
export async function explainEverything(admin: pg.Client, analyse = false): Promise<void> {
  await admin.query(`LOAD 'auto_explain'`);
  for (const setting of [
    `auto_explain.log_min_duration = 0`,
    `auto_explain.log_format = 'json'`,
    `auto_explain.log_nested_statements = on`,
    `auto_explain.log_analyze = ${analyse ? 'on' : 'off'}`,
    `auto_explain.log_timing = off`,
    `log_line_prefix = '[%a] '`,
    `session_preload_libraries = 'auto_explain'`,
  ]) {
    await admin.query(`ALTER SYSTEM SET ${setting}`);
  }
  await admin.query('SELECT pg_reload_conf()');
}

/** The plans in the log of an embedded server, from a byte on. @param home of the server */
export async function loggedPlans(home: string, from: number): Promise<LoggedPlan[]> {
  const text = (await readFile(logOf(home))).subarray(from).toString('utf8');
  // Continuation lines begin with a tab.
  const entries = text.split(/\n(?!\t)/);
  const logged = entries.flatMap((entry) => {
    const [, application, json] = /^\[([^\]]*)\] LOG: {2}duration: [\d.]+ ms {2}plan:\n(.*)$/s.exec(entry) ?? [];
    return json === undefined || application === OBSERVER ? [] : [parsed(json.replaceAll('\n\t', '\n'))];
  });
  const plans = logged.filter((one) => one !== undefined);
  if (plans.length < logged.length * MIN_PARSED) {
    throw new Error(`Only ${plans.length} of ${logged.length} logged plans can be parsed.`);
  }
  return plans.map((one) => ({ text: one['Query Text'], plan: one.Plan }));
}

/** Backends write entries of more than a pipe's 4 KiB in pieces, so that two may be mixed; undefined for such an entry. */
function parsed(json: string): { 'Query Text': string; Plan: PlanNode } | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Bytes of the log so far. */
export async function logSize(home: string): Promise<number> {
  return (await stat(logOf(home))).size;
}

const logOf = (home: string): string => path.join(home, 'cluster', 'server.log');
