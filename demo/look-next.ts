import path from 'node:path';
import { dataOf, noteFile, ROOT } from './settings.js';
import { tell, title } from './stage.js';

/** Prints what a reader can try next. */
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
    'Next, docs/first-day.md shows how to create your own provider, client, session and note.',
    `Keys: ${shortened(noteFile())}. Logs: ${shortened(dataOf('demo'))}/*.log.`,
  );
  title('In a browser:');
  tell(
    `${simulatorUrl}/_simulator/users  the users on the platform`,
    `${url}/docs  the API, to read and to try`,
    `${url}/console  the results; sign in with the key`,
    key,
  );
}

function shortened(place: string): string {
  return path.relative(ROOT, place);
}
