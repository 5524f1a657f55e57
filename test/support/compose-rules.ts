/** Says what is wrong with a value, or nothing. */
type Rule = (value: unknown) => string | undefined;

const must =
  (what: string, holds: (value: unknown) => boolean): Rule =>
  (value) =>
    holds(value) ? undefined : `must be ${what}`;

const isText = (value: unknown): value is string => typeof value === 'string';
const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isScalar = (value: unknown) => value === null || ['string', 'number', 'boolean'].includes(typeof value);

/** Durations such as `1m30s` (Compose specification, "Specifying durations"). */
const DURATION = /^(\d+(\.\d+)?(us|ms|s|m|h))+$/;

const text = must('a text', isText);
const flag = must('true or false', (value) => typeof value === 'boolean');
const texts = must('a list of texts', isTexts);
const distinct = must('a list of different texts', (value) => isTexts(value) && new Set(value).size === value.length);
const textOrTexts = must('a text or a list of texts', (value) => isText(value) || isTexts(value));
const duration = must('a duration such as 10s', (value) => isText(value) && DURATION.test(value));
const scalars = must('a map of scalars', (value) => isMap(value) && Object.values(value).every(isScalar));

/** A rule for each member that may stand in a map. */
const members =
  (rules: Record<string, Rule>): Rule =>
  (value) => {
    if (!isMap(value)) return 'must be a map';
    const faults = Object.entries(value).flatMap(([name, member]) => {
      const fault = Object.hasOwn(rules, name) ? rules[name]?.(member) : 'is no member that there is a rule for';
      return fault === undefined ? [] : [`${name} ${fault}`];
    });
    return faults.length > 0 ? faults.join('; ') : undefined;
  };

/** One rule for each member of a map. */
const each =
  (rule: Rule): Rule =>
  (value) =>
    members(Object.fromEntries(Object.keys(isMap(value) ? value : {}).map((name) => [name, rule])))(value);

const healthcheck = members({
  test: must(
    'a text, or a list of texts that begins with CMD, CMD-SHELL or NONE',
    (value) => isText(value) || (isTexts(value) && ['CMD', 'CMD-SHELL', 'NONE'].includes(value[0] ?? '')),
  ),
  interval: duration,
  timeout: duration,
  start_period: duration,
  retries: must('a number', (value) => typeof value === 'number'),
});

const dependsOn = each(
  members({
    condition: must('a condition', (value) =>
      ['service_started', 'service_healthy', 'service_completed_successfully'].includes(value as string),
    ),
  }),
);

const size = must('a size such as 512m', (value) => /^\d+[bkmg]$/.test(String(value)));
const number = must('a number', (value) => typeof value === 'number');

const service = members({
  build: members({ context: text, args: scalars }),
  cap_drop: distinct,
  command: textOrTexts,
  cpus: number,
  depends_on: dependsOn,
  env_file: textOrTexts,
  environment: scalars,
  healthcheck,
  image: text,
  init: flag,
  mem_limit: size,
  pids_limit: number,
  ports: distinct,
  read_only: flag,
  restart: must('a restart policy', (value) => /^(no|always|on-failure(:\d+)?|unless-stopped)$/.test(String(value))),
  security_opt: distinct,
  shm_size: size,
  stop_grace_period: duration,
  tmpfs: textOrTexts,
  user: text,
  volumes: texts,
});

const file = members({
  name: must('a project name', (value) => isText(value) && /^[a-z0-9][a-z0-9_-]*$/.test(value)),
  services: each(service),
  volumes: each(must('empty', (value) => value === null)),
});

/**
 * What the Compose specification says of a file's shape (https://compose-spec.io, "05-services.md"), for the members
 * that this project uses; a member without a rule is a fault, so that the rules grow with the file.
 *
 * @param parsed the YAML, merged
 * @returns what is wrong with it, or undefined
 */
export function composeFault(parsed: Record<string, unknown>): string | undefined {
  const fault = file(Object.fromEntries(Object.entries(parsed).filter(([name]) => !name.startsWith('x-'))));
  return fault ?? danglingFault(parsed);
}

/** Services and volumes that are named, and that there are none of. */
function danglingFault({ services, volumes }: Record<string, unknown>): string | undefined {
  const known = services as Record<string, { depends_on?: object; volumes?: string[] }>;
  const named = Object.keys(volumes ?? {});
  for (const [name, { depends_on = {}, volumes: mounted = [] }] of Object.entries(known)) {
    const stranger = Object.keys(depends_on).find((other) => !Object.hasOwn(known, other));
    if (stranger !== undefined) return `${name} depends on ${stranger}, which is no service`;
    const volume = mounted.map((mount) => mount.split(':')[0] ?? '').find((source) => /^\w/.test(source));
    if (volume !== undefined && !named.includes(volume)) return `${name} mounts ${volume}, which is no volume`;
  }
  return undefined;
}
