/** The commands that show the lists of the API. */
const COMMANDS: Record<string, string> = {
  '/v1/providers': 'people --kind provider',
  '/v1/clients': 'people --kind client',
  '/v1/people.csv': 'people --csv',
  '/v1/sessions': 'sessions',
  '/v1/compliance/jobs': 'compliance',
  '/v1/webhook-deliveries': 'deliveries',
  '/v1/subscriptions': 'subscriptions',
  '/v1/imports': 'imports',
  '/v1/capabilities': 'capabilities',
  '/v1/api-keys': 'keys',
};

/** The command that shows a list of the API, without `npx notebridge`. @param list its path, with `state` as its query if any */
function commandOf(list: string): string | undefined {
  const [path = '', query] = list.split('?');
  const command = COMMANDS[path];
  const state = new URLSearchParams(query).get('state');
  return command && (state === null ? command : `${command} --state ${state}`);
}

/** Replaces the routes in a text of the service by commands. */
export function withCommands(text: string): string {
  return text.replace(/GET (\/v1\/[\w./-]*\w(?:\?state=[\w-]+)?)/g, (route, list: string) => {
    const command = commandOf(list);
    return command ? `npx notebridge ${command}` : route;
  });
}
