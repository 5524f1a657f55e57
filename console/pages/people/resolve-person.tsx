import { api, type Schemas } from '../../api/client.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';

type Choice = Schemas['ResolveChoiceResponse'];

/** In the words of the sentences that say why a person needs a review. */
const LABELS: Record<Choice['action'], string> = {
  link: 'Link',
  create: 'Create',
  retry: 'Retry',
  ignore: 'Ignore',
  delete: 'Delete',
};

/** What a person who needs a review may be resolved with, and what each choice does. */
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
          link: <Field label="Platform user id" name="platformUserId" required pattern=".*\S.*" title="Its id there" />,
        }}
        run={run}
      />
    </Section>
  );
}
