import { useState } from 'react';
import { Link } from 'wouter';
import { api, type Schemas } from '../../api/client.js';
import { labelsOf, wordOf } from '../../api/words.js';
import { Choices } from '../../parts/choices.js';
import { Field } from '../../parts/field.js';
import { Section } from '../../parts/layout.js';
import { Read } from '../../parts/read.js';
import { Moment } from '../../parts/values.js';
import { personAddress } from './person.js';

type Choice = Schemas['ResolveChoiceResponse'];

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
        labels={Object.fromEntries(labelsOf('resolveAction')) as Record<Choice['action'], string>}
        scope="people:write"
        dangerous="delete"
        recommended={wordOf('personCode', props.person.sync.error?.code ?? '')}
        fields={{ link: <PlatformUserField person={props.person} /> }}
        run={run}
      />
    </Section>
  );
}

/** The form of the platform's ids. */
const UUID = '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';

/** The platform user to link to, and the known facts about it. */
function PlatformUserField({ person }: { person: Schemas['PersonResponse'] }) {
  const [platformUserId, setUser] = useState('');
  const params = { path: { platformUserId } };
  return (
    <>
      <Field
        label="Platform user id"
        name="platformUserId"
        required
        pattern={`\\s*${UUID}\\s*`}
        title="A UUID, as the platform shows it"
        onChange={({ target }) => setUser(target.validity.valid ? target.value.trim() : '')}
      />
      {platformUserId !== '' && (
        <Read
          name={['people', 'platform-user', platformUserId]}
          call={() => api.GET('/v1/people/platform-users/{platformUserId}', { params })}
        >
          {(user) => <PlatformUserFacts user={user} person={person} />}
        </Read>
      )}
    </>
  );
}

function PlatformUserFacts(props: { user: Schemas['PlatformUserResponse']; person: Schemas['PersonResponse'] }) {
  const { role, externalUserId, seenAt, deleted, person, formerPerson } = props.user;
  const isOwn = person?.kind === props.person.kind && person.externalId === props.person.externalId;
  return (
    <ul className="plain" role="status">
      {person && (
        <li>
          {isOwn ? 'Already linked to this person: ' : 'Already linked to '}
          <PersonLink person={person} />
        </li>
      )}
      {deleted && (
        <li>
          Deleted through this service
          {formerPerson && (
            <>
              ; it belonged to <PersonLink person={formerPerson} />
            </>
          )}
        </li>
      )}
      {role !== null && <li>Role on the platform: {role}</li>}
      {externalUserId !== null && <li>External id on the platform: {externalUserId}</li>}
      {seenAt !== null && !deleted && (
        <li>
          First seen: <Moment at={seenAt} />
        </li>
      )}
    </ul>
  );
}

function PersonLink({ person }: { person: Schemas['PlatformUserPersonResponse'] }) {
  return <Link href={personAddress(person)}>{`${person.kind} ${person.externalId}`}</Link>;
}
