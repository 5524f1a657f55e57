/** What a cancel of an import does to whom. */
export interface Cancellation {
  /** Rows that were not applied, and are skipped. */
  skipped: number;
  /** New people that are withdrawn, because nothing was sent for them. */
  withdrawnPeople: number;
  /** Deletions that are withdrawn, because they were not sent. */
  withdrawnDeletions: number;
  /** Deletions that complete, because they were sent, or a later import says the same. */
  completedDeletions: number;
  /** Other people whose rows were applied: they stay as the rows say. */
  staying: number;
}

/** The effect of a cancel in sentences, those that affect no one left out. */
export function cancellationText(effect: Cancellation): string {
  const { skipped, withdrawnPeople, withdrawnDeletions, completedDeletions, staying } = effect;
  const sentences = [
    skipped > 0 && `${counted(skipped, 'row was', 'rows were')} not applied yet and will be skipped.`,
    withdrawnPeople > 0 &&
      `${counted(withdrawnPeople, 'new person', 'new people')} will be forgotten, because nothing was sent for them.`,
    withdrawnDeletions > 0 &&
      `${counted(withdrawnDeletions, 'deletion was', 'deletions were')} not sent and will be taken back: these people stay.`,
    completedDeletions > 0 &&
      `${counted(completedDeletions, 'deletion was', 'deletions were')} sent, or a later import says the same: these people do not come back. If a later import is wrong, cancel that one first.`,
    staying > 0 &&
      `${counted(staying, 'other person stays', 'other people stay')} as the files say, and what is in progress for them is finished.`,
  ];
  return sentences.filter(Boolean).join(' ') || 'No one is affected.';
}

const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
