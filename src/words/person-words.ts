import { labels, vocabulary, type Word } from './word.js';

export const PERSON_STATES = labels({
  pending: 'Pending',
  waiting: 'Waiting',
  synced: 'Synced',
  failed: 'Failed',
  'needs-review': 'Needs review',
  deleting: 'Deleting',
  deleted: 'Deleted',
});

/** The actions with which an operator may resolve a person, each with its effect. */
export const RESOLVE_ACTIONS = vocabulary({
  link: {
    label: 'Link',
    hint: 'Links this person to the platform user that you name, and sends a client’s providers; creates no user. Sessions and notes of that user then belong to this person.',
  },
  create: {
    label: 'Create',
    hint: 'Looks up the email and links its user, otherwise creates one; without an email, it creates one immediately, which may be a second account. If this person has another account, such as that of a merged client, it goes on with that one instead. Sessions and notes of an earlier account stay.',
  },
  retry: {
    label: 'Retry',
    hint: 'Makes the failed call again, with the current data; for a person to delete, that is the deletion of its account. Nothing else changes, here or on the platform.',
  },
  ignore: {
    label: 'Ignore',
    hint: 'Stops syncing this person until it is PUT again or resolved in another way; a person to delete counts as deleted here. Nothing is sent: its account, sessions and notes on the platform stay, but other accounts of a person to delete, such as that of a merged client, are still deleted.',
  },
  delete: {
    label: 'Delete',
    hint: 'Deletes the platform user of a person to delete that was found by its email, and its other accounts.',
  },
  deleted: {
    label: 'It is deleted',
    hint: 'Counts the account of a person to delete as deleted, and sends nothing about it. Other accounts of the person are still deleted.',
  },
});

const NOTES_HERE = 'Notes stored here stay, unless ERASE_NOTES_OF_DELETED_CLIENTS erases those of a client.';
const NOTES_THERE = 'the platform’s documentation does not say what happens to its notes there';
const OTHERS = 'Other accounts of this person, such as that of a merged client, are deleted, too.';

/** The effects on a person to delete. */
export const DELETION_EFFECTS = {
  link: `Deletes the platform user that you name; ${NOTES_THERE}. ${OTHERS} ${NOTES_HERE}`,
  retry: `Sends the deletion of the account again; ${NOTES_THERE}. ${OTHERS} ${NOTES_HERE}`,
  delete: `Deletes the linked platform user, even if someone else uses it; ${NOTES_THERE}. ${OTHERS} ${NOTES_HERE}`,
  deleted: `Counts this account as deleted and sends nothing about it, because the platform has no such user. ${OTHERS} ${NOTES_HERE}`,
  ignore: `Counts this account as deleted and sends nothing about it: if there is one, it stays on the platform, with its notes. ${OTHERS} ${NOTES_HERE}`,
};

/** A reason that lasts until an operator decides or the EHR writes. */
type Unsettled = Required<Word> & { action: keyof typeof RESOLVE_ACTIONS };
const unsettled = <Code extends string>(words: Record<Code, Unsettled>): Record<Code, Unsettled> => words;

/** Reasons why an operator must decide. */
export const REVIEWS = unsettled({
  'email-taken': {
    label: 'Email used twice',
    hint: 'Another person has this email: in the EHR, or on the platform, which shows no way to change the email of an account. POST /v1/people/search with the email finds that person. Correct a wrong email, merge two charts of one client, or delete the other person if it has left. If the platform has changed the account, resolve this one with "retry". Otherwise PUT this one with another email, or a client with none, or resolve it with "ignore".',
    action: 'ignore',
    why: 'Right if the EHR has the same person twice and keeps both. If the email has moved to this person, PUT it with another email, or a client with none.',
  },
  'create-unknown': {
    label: 'Create without an answer',
    hint: 'The platform did not answer when this person was created without an email, so the person may exist there. Look there after a minute, then resolve with "link" or "create".',
    action: 'link',
    why: 'Right if the platform has the user, because a create would make a second one. If it has none, create.',
  },
  'restored-unknown': {
    label: 'Unknown since a restore',
    hint: 'The database was restored, and this client has no email. It may have been created after the backup, so look on the platform, then resolve with "link" or "create". To link many people, import a file with the column platformUserId.',
    action: 'link',
    why: 'Right if the platform has the user, because a create would make a second one. If it has none, create.',
  },
  'delete-unknown': {
    label: 'Deletion of an unknown user',
    hint: 'This person must be deleted, but may exist on the platform, because an earlier create got no answer. Look there, then resolve with "link" (deletes the user) or "ignore" (counts the person as deleted here).',
    action: 'link',
    why: 'Right if the platform has the user, which is then deleted. If it has none, ignore.',
  },
  'platform-user-taken': {
    label: 'Platform user linked twice',
    hint: 'The platform user with this email belongs to another person, such as one that had the email before. The platform shows no way to change the email of an account: ask its support to change it, then resolve this one with "retry". Or PUT this one with another email, or a client with none; or resolve with "link" to the right user, or with "ignore". GET /v1/people/platform-users/{userId} names the person of a user.',
    action: 'ignore',
    why: 'Right if the EHR has the same person twice, because the other record has the user. If the email has moved to this person, have it changed on the platform, then retry.',
  },
  'platform-user-missing': {
    label: 'Platform user missing',
    hint: 'The platform no longer knows this user. Resolve with "create" to create it again, or with "link" to another user; sessions and notes stored here stay.',
    action: 'create',
    why: 'Right if the user was deleted on the platform, because the EHR still has the person. If it has another user, link that one.',
  },
  'role-mismatch': {
    label: 'Email of another role',
    hint: 'The platform user with this email has another role, so it is a different person. Correct the email, or resolve with "link" to the right user.',
    action: 'link',
    why: 'Right if the person has a user with another email. Otherwise correct the email in the EHR.',
  },
  'delete-linked': {
    label: 'Deletion of a user found by email',
    hint: 'This person was linked only by its email, so the platform user may be someone else. Look on the platform, then resolve with "delete", or with "ignore" to keep the user and its notes there.',
    action: 'delete',
    why: 'Right if the platform shows the same person, because its data would stay there. If it shows someone else, ignore.',
  },
  'delete-unconfirmed': {
    label: 'Deletion not confirmed',
    hint: 'The platform answers 404 to the deletion: it does not know this user, or the path of deleteUser in PLATFORM_CONTRACT is wrong. Look on the platform, then resolve with "deleted" or, after the path is corrected, with "retry".',
    action: 'retry',
    why: 'Right once the path is corrected. If the platform has no such user, say that it is deleted.',
  },
});

/** Reasons why no call is made until the person is changed or resolved. */
export const FAULTS = unsettled({
  rejected: {
    label: 'Rejected by the platform',
    hint: 'The platform rejected this person. Correct the data and PUT it again. The call is repeated once, after an hour.',
    action: 'retry',
    why: 'Right once the cause on the platform is fixed. Otherwise correct the data in the EHR, which retries automatically.',
  },
  forbidden: {
    label: 'Forbidden by the platform',
    hint: 'The platform answers 401 or 403 only for this person. Ask the support of the platform, then resolve with "retry".',
    action: 'retry',
    why: 'Right once the support of the platform has allowed this person.',
  },
  unanswered: {
    label: 'No answer for a day',
    hint: 'For a day, the platform gave no readable answer about this person, but answered about others. Ask the support of the platform, then resolve with "retry".',
    action: 'retry',
    why: 'Right once the support of the platform has found the cause.',
  },
  ignored: {
    label: 'Ignored by an operator',
    hint: 'An operator chose to ignore this person. PUT it again, or resolve with "retry", to continue.',
    action: 'retry',
    why: 'Right if this person should be synced again.',
  },
});

/** Reasons why calls pause for everyone. */
export const STOPS = vocabulary({
  'rate-limited': {
    label: 'Rate limited',
    hint: 'The platform asked for fewer calls. The call is retried automatically.',
  },
  'platform-unauthorized': {
    label: 'API key rejected',
    hint: 'The platform answers 401 or 403. Check PLATFORM_API_KEY and its rights; queued work resumes automatically.',
  },
  'platform-address': {
    label: 'Wrong URL of the platform',
    hint: 'This URL is not the platform’s user-management API (404, 405, a redirect or HTML). Fix PLATFORM_BASE_URL or the paths in PLATFORM_CONTRACT; queued work then resumes automatically.',
  },
  'platform-fault': {
    label: 'No readable answer',
    hint: 'The platform gave no readable answer. The call is retried automatically.',
  },
});

/** All reasons why a person is not synced. */
export const PERSON_CODES = {
  ...REVIEWS,
  ...FAULTS,
  ...STOPS,
  ...vocabulary({
    'not-configured': {
      label: 'Not configured',
      hint: 'The contract file has no apiKey, so nothing is sent. Set apiKey.header in PLATFORM_CONTRACT and restart.',
    },
    held: {
      label: 'Sending is held',
      hint: 'Sending to the platform is held. Changes are sent once an operator releases sending (npx notebridge release).',
    },
    'legal-hold': {
      label: 'Legal hold',
      hint: 'A legal hold keeps everything about this client, here and on the platform. The deletion follows once an administrator releases the hold.',
    },
    'provider-not-mirrored': {
      label: 'Provider not on the platform',
      hint: 'A provider of this client is not on the platform yet. The client follows automatically.',
    },
    'clients-still-listed': {
      label: 'Clients still listed',
      hint: 'On the platform, some clients still have this provider in their lists. Once the lists are changed, the provider is deleted automatically.',
    },
    'outcome-unknown': {
      label: 'Outcome unknown',
      hint: 'The platform did not answer a create. A lookup by email will show whether the person exists, so that no duplicate is created.',
    },
    'platform-unreachable': {
      label: 'Platform unreachable',
      hint: 'The platform cannot be reached. The call is retried automatically.',
    },
    unreadable: {
      label: 'Data unreadable',
      hint: 'The data of this person cannot be decrypted, so nothing is sent. See vault in /health/ready; add the missing key to DATA_KEYS, or PUT the person again.',
    },
    internal: {
      label: 'Work failed',
      hint: 'The work on this person failed, which the log explains. It is retried automatically.',
    },
  }),
};
