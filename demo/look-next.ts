import path from 'node:path';
import { DEMO_DATA, noteFile, ROOT } from './settings.js';
import { tell, title } from './stage.js';

/** What a reader may try now. */
export function lookNext(url: string, simulatorUrl: string, key: string): void {
  title('In another terminal, in this folder:');
  tell(
    'npx notebridge status',
    'npx notebridge trace client C-1006',
    'npx notebridge resolve client C-1006 ignore',
    'npx notebridge doctor',
    `export NOTEBRIDGE_URL=${url} NOTEBRIDGE_KEY=${key}`,
    `curl --header "Authorization: Bearer $NOTEBRIDGE_KEY" "$NOTEBRIDGE_URL/v1/clients/C-1002"`,
    '',
    'docs/first-day.md goes on from here, to a provider, a client, a session and a note of your own.',
    `Keys: ${shortened(noteFile())}. Logs: ${shortened(DEMO_DATA)}/*.log.`,
  );
  title('In a browser:');
  tell(
    `${simulatorUrl}/_simulator/users  what the platform holds`,
    `${url}/docs  every route, to be tried there`,
    `${url}/console  what became of all this; sign in with the key`,
    key,
  );
}

function shortened(place: string): string {
  return path.relative(ROOT, place);
}
