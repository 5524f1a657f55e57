import { labels } from './word.js';

/** The fields of a profile: what the EHR says about a person besides ids and providers. */
export const PROFILE_FIELDS = labels({ email: 'Email', firstName: 'First name', lastName: 'Last name' });
export type ProfileField = keyof typeof PROFILE_FIELDS;

/** The fields of a row of an import, in the order of the documented CSV columns. */
export const PERSON_FIELDS = {
  ...labels({ kind: 'Kind', externalId: 'External id' }),
  ...PROFILE_FIELDS,
  ...labels({ providers: 'Providers', platformUserId: 'Platform user' }),
};
