import { ApiProperty } from '@nestjs/swagger';
import type { PersonKind, PersonState } from './person.js';
import { messageFor } from './person-messages.js';
import { ORIGINS, type Origin, type PersonRow } from './person-row.js';
import { platformCopy } from './platform-copy.js';
import type { ProfileSeal } from './profile.js';

export class SyncErrorView {
  @ApiProperty({ type: String, example: 'email-taken' })
  code!: string;

  @ApiProperty({ type: String })
  message!: string;
}

export class SyncView {
  @ApiProperty({ enum: ['pending', 'waiting', 'synced', 'failed', 'needs-review', 'deleting', 'deleted'] })
  state!: PersonState;

  @ApiProperty({ type: String, nullable: true, description: 'The next call to the platform' })
  step!: string | null;

  @ApiProperty({ type: SyncErrorView, nullable: true })
  error!: SyncErrorView | null;

  @ApiProperty({
    type: [String],
    description: 'Changed fields that the platform has no operation for: email, firstName, lastName, primaryProvider',
  })
  notPushable!: string[];

  @ApiProperty({
    type: [String],
    description: 'Of these fields it is not known what the platform holds, since this service did not make the user',
  })
  unknownThere!: string[];

  @ApiProperty({ type: String, format: 'date-time' })
  updatedAt!: string;
}

/** A person as the EHR sees it. */
export class PersonView {
  @ApiProperty({ type: String })
  externalId!: string;

  @ApiProperty({ enum: ['provider', 'client'] })
  kind!: PersonKind;

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Null where there is none, and once the person is deleted',
  })
  email!: string | null;

  @ApiProperty({ type: String, description: 'Empty once the person is deleted' })
  firstName!: string;

  @ApiProperty({ type: String, description: 'Empty once the person is deleted' })
  lastName!: string;

  @ApiProperty({ type: [String], required: false, description: 'Clients only; the first is the primary' })
  providers?: string[];

  @ApiProperty({ type: String, nullable: true })
  platformUserId!: string | null;

  @ApiProperty({
    enum: ORIGINS,
    nullable: true,
    description: 'How the person came by this user: made here, found by its email, told by an event, or linked by hand',
  })
  origin!: Origin | null;

  @ApiProperty({ type: String, nullable: true })
  inviteUrl!: string | null;

  @ApiProperty({ type: SyncView })
  sync!: SyncView;
}

/**
 * Shows a person.
 *
 * @param isConfigured whether the platform can be called at all
 */
export function showPerson(row: PersonRow, seal: ProfileSeal, isConfigured: boolean): PersonView {
  const profile = seal.open(row, row.sealed.profile);
  const applied = row.sealed.appliedProfile && seal.open(row, row.sealed.appliedProfile);
  const stuck = !isConfigured && (row.state === 'pending' || row.state === 'deleting');
  const code = stuck ? 'not-configured' : row.state === 'synced' || row.state === 'deleted' ? null : row.errorCode;
  const text = row.sealed.errorText && !stuck ? seal.openErrorText(row, row.sealed.errorText) : undefined;
  return {
    externalId: row.externalId,
    kind: row.kind,
    ...profile,
    ...(row.kind === 'client' && { providers: row.around.providers.map((provider) => provider.externalId) }),
    platformUserId: row.person.platformUserId,
    origin: row.origin,
    inviteUrl: row.sealed.inviteUrl && seal.openInviteUrl(row, row.sealed.inviteUrl),
    sync: {
      state: row.state,
      step: row.step,
      error: code === null ? null : { code, message: messageFor(code, text) },
      ...platformCopy(row, profile, applied),
      updatedAt: row.updatedAt.toISOString(),
    },
  };
}
