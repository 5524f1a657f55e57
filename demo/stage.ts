import type { Client } from '../client/create-client.js';
import type { Platform } from './platform.js';

/** The stage of the demo's steps: the EHR's side and the platform's. */
export interface Stage {
  /** notebridge, as the EHR sees it. */
  ehr: Client;
  platform: Platform;
  /** Aborted when the demo should stop. */
  signal: AbortSignal;
}

/** Prints lines, indented below the title of their step. */
export function tell(...lines: string[]): void {
  for (const line of lines) console.log(`   ${line}`);
}

/** Prints the title of a step. */
export function title(text: string): void {
  console.log(`\n${text}`);
}
