import path from 'node:path';
import { DEMO_DATA, noteFile, ROOT } from './settings.js';
import { tell, title } from './stage.js';

/** Launches the recorder for a session that the demo did not have, and leads back to a page of the demo's. */
const launch = (url: string) =>
  JSON.stringify({ provider: 'P-104', client: 'C-1002', variant: 'virtual', redirectUrl: `${url}/docs` });

/** What a reader may try now. */
export function lookNext(url: string, simulatorUrl: string, key: string): void {
  title('Where to look next, while this runs:');
  tell(
    `${url}/docs  every route, to be tried there`,
    `${simulatorUrl}/_simulator/users  what the platform holds`,
    'npx notebridge people --state needs-review',
    'npx notebridge trace client C-1006',
    'npx notebridge resolve client C-1006 ignore',
    'npx notebridge sessions',
    'npx notebridge deliveries',
    'npx notebridge doctor',
    `curl -H 'Authorization: Bearer ${key}' ${url}/v1/clients/C-1002`,
    `curl -H 'Authorization: Bearer ${key}' '${url}/v1/clients?state=synced&limit=5'`,
    'the recorder, at the address that this answers:',
    `curl -H 'Authorization: Bearer ${key}' --json '${launch(url)}' ${url}/v1/recorder/launches`,
  );
  tell(
    '',
    `Keys: ${shortened(noteFile())}. Logs: ${shortened(DEMO_DATA)}/*.log. README.md says how to run it for good.`,
  );
}

function shortened(place: string): string {
  return path.relative(ROOT, place);
}
