import type { Client } from '../client/create-client.js';
import type { Platform } from './platform.js';

/** What the steps of the demo are played on: the EHR's side and the platform's. */
export interface Stage {
  /** notebridge, as the EHR sees it. */
  ehr: Client;
  platform: Platform;
  /** Stops a step when the demo is to stop. */
  signal: AbortSignal;
}

/** Tells something, indented below its step's title. */
export function tell(...lines: string[]): void {
  for (const line of lines) console.log(`   ${line}`);
}

/** Begins a step. */
export function title(text: string): void {
  console.log(`\n${text}`);
}
