import { Injectable } from '@nestjs/common';

/** Finds all ids of the subject with the given id, such as the former ids of a person. */
type FindIds = (id: string) => Promise<readonly string[]>;

/** The subjects that are the same thing under different ids, as features declare them. */
@Injectable()
export class SubjectIds {
  private readonly finders = new Map<string, FindIds>();

  /** Declares that subjects of a kind may have several ids. @param kind the path before the id, such as `clients` */
  register(kind: string, find: FindIds): void {
    this.finders.set(kind, find);
  }

  /** All subjects that are the same as `subject`, itself included. */
  async equalTo(subject: string): Promise<string[]> {
    const kind = kindOf(subject);
    const id = decoded(subject.slice(kind.length + 1));
    const ids = id === undefined ? [] : ((await this.finders.get(kind)?.(id)) ?? []);
    return [...new Set([subject, ...ids.map((each) => `${kind}/${encodeURIComponent(each)}`)])];
  }
}

/** The part of a subject before its id. */
export const kindOf = (subject: string): string => subject.slice(0, Math.max(0, subject.lastIndexOf('/')));

/** The id in the last segment of a path; undefined if its encoding is broken. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
