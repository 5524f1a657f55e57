import { cancellationText } from './cancellation.js';

const NO_ONE = { skipped: 0, withdrawnPeople: 0, withdrawnDeletions: 0, completedDeletions: 0, staying: 0 };

test('the text of a cancel counts what happens to whom', () => {
  expect(cancellationText({ ...NO_ONE, withdrawnDeletions: 130, completedDeletions: 50, staying: 1_200 })).toBe(
    '130 deletions were not sent and will be taken back: these people stay. ' +
      '50 deletions were sent, or a later import says the same: these people do not come back. ' +
      'If a later import is wrong, cancel that one first. ' +
      '1,200 other people stay as the files say, and what is in progress for them is finished.',
  );
});

test('it uses the singular, and leaves out what affects no one', () => {
  expect(cancellationText({ ...NO_ONE, skipped: 1, withdrawnPeople: 1 })).toBe(
    '1 row was not applied yet and will be skipped. 1 new person will be forgotten, because nothing was sent for them.',
  );
  expect(cancellationText(NO_ONE)).toBe('No one is affected.');
});
