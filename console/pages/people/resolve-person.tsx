import { api, type Schemas } from '../../api/client.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';

type Choice = Schemas['ResolveChoiceResponse'];

/** The same words as in the messages of `person-codes.ts`. */
const LABELS: Record<Choice['action'], string> = {
  link: 'Link',
  create: 'Create',
  retry: 'Retry',
  ignore: 'Ignore',
  delete: 'Delete',
};

/** The actions that may resolve a person, each with its effect. */
export function ResolvePerson(props: { person: Schemas['PersonResponse']; choices: readonly Choice[] }) {
  const { kind, externalId } = props.person;
  const run = (action: Choice['action'], given: FormData): Promise<unknown> => {
    const platformUserId = given.get('platformUserId')?.toString().trim();
    const request = { params: { path: { externalId } }, body: { action, platformUserId } };
    return kind === 'client'
      ? api.POST('/v1/clients/{externalId}/resolve', request)
      : api.POST('/v1/providers/{externalId}/resolve', request);
  };
  return (
    <Section card title="Resolve">
      <Choices
        what={`${kind} ${externalId}`}
        choices={props.choices}
        labels={LABELS}
        scope="people:write"
        dangerous="delete"
        fields={{
          link: <Field label="Platform user id" name="platformUserId" required pattern=".*\S.*" title="A user id" />,
        }}
        run={run}
      />
    </Section>
  );
}
