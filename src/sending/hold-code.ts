/** The code of people and requests that wait for the release of a hold, and what it means. */
export const HELD = 'held';
export const HELD_MESSAGE =
  'Everything that goes to the platform is held. It is sent after an operator releases it (npx notebridge release).';
