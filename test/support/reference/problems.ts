import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { HINTS } from '../../../src/imports/parse/row/rejection.js';
import { PERSON_CODES } from '../../../src/words/person-words.js';
import type { Word } from '../../../src/words/word.js';
import { codes, table } from './table.js';

/** Placeholders for values in the page's sentences. */
const ANY = '…';

type Bindings = Map<string, ts.Expression>;

/** A problem that one place of the source creates. */
interface Made {
  type: string;
  status: string;
  detail: string;
}

/** All descendants of a node of one kind. */
function all<T extends ts.Node>(node: ts.Node, is: (node: ts.Node) => node is T): T[] {
  const found: T[] = [];
  const visit = (each: ts.Node): void => {
    if (is(each)) found.push(each);
    ts.forEachChild(each, visit);
  };
  visit(node);
  return found;
}

/** The possible texts of an expression; `…` stands for values that are known only at run time. */
function textsOf(expression: ts.Node | undefined, bindings: Bindings): string[] {
  if (!expression) return [ANY];
  if (ts.isStringLiteralLike(expression) || ts.isNumericLiteral(expression)) return [expression.text];
  if (ts.isParenthesizedExpression(expression)) return textsOf(expression.expression, bindings);
  if (ts.isTemplateExpression(expression)) {
    const { head, templateSpans } = expression;
    return [head.text + templateSpans.map((span) => constantText(span.expression) + span.literal.text).join('')];
  }
  if (ts.isConditionalExpression(expression)) {
    return [expression.whenTrue, expression.whenFalse].flatMap((each) => textsOf(each, bindings));
  }
  if (ts.isBinaryExpression(expression)) {
    const { left, right, operatorToken } = expression;
    const [first, second] = [textsOf(left, bindings), textsOf(right, bindings)];
    return operatorToken.kind === ts.SyntaxKind.PlusToken
      ? [`${first[0]}${second[0]}`]
      : [...first, ...second].filter((text) => text !== ANY);
  }
  if (ts.isPropertyAccessExpression(expression) && ts.isIdentifier(expression.expression)) {
    const holder = declared(expression.expression);
    const members = holder && ts.isObjectLiteralExpression(holder) ? holder.properties : [];
    const member = members.find((each) => each.name?.getText() === expression.name.text);
    return textsOf(member && ts.isPropertyAssignment(member) ? member.initializer : undefined, bindings);
  }
  if (!ts.isIdentifier(expression)) return [ANY];
  const value = bindings.get(expression.text) ?? declared(expression);
  return value ? textsOf(value, new Map()) : ofTable(expression);
}

/** The text of a constant, or the first of two that a condition chooses between. */
function constantText(expression: ts.Expression): string {
  const value = ts.isIdentifier(expression) ? declared(expression) : undefined;
  const isText = value && (ts.isStringLiteralLike(value) || ts.isConditionalExpression(value));
  return (isText && textsOf(value, new Map())[0]) || ANY;
}

/** The rows of a table whose text is chosen by the type of the problem: `new Problem(409, code, DETAILS[code])`. */
function tableOf([status, type, detail]: readonly ts.Expression[]): Made[] {
  if (!type || !detail || !ts.isElementAccessExpression(detail)) return [];
  const { expression, argumentExpression } = detail;
  const table = ts.isIdentifier(expression) ? declared(expression) : undefined;
  if (!table || !ts.isObjectLiteralExpression(table) || argumentExpression.getText() !== type.getText()) return [];
  return table.properties.filter(ts.isPropertyAssignment).map(({ name, initializer }) => ({
    type: ts.isStringLiteral(name) ? name.text : name.getText(),
    status: textsOf(status, new Map())[0] ?? ANY,
    detail: textsOf(initializer, new Map())[0] ?? ANY,
  }));
}

/** The possible texts of a name that is a member of the rows of a table in its file. */
function ofTable(name: ts.Identifier): string[] {
  const rows = all(name.getSourceFile(), ts.isPropertyAssignment).filter((each) => each.name.getText() === name.text);
  const texts = rows.map(({ initializer }) => initializer).filter(ts.isStringLiteral);
  return texts.length > 0 ? texts.map(({ text }) => text) : [ANY];
}

/** The value of a constant of the same function, or of its file. */
function declared(name: ts.Identifier): ts.Expression | undefined {
  for (let scope: ts.Node = name; scope; scope = scope.parent) {
    if (!ts.isBlock(scope) && !ts.isSourceFile(scope)) continue;
    const found = scope.statements
      .filter(ts.isVariableStatement)
      .flatMap(({ declarationList }) => [...declarationList.declarations])
      .find((each) => each.name.getText() === name.text);
    if (found) return found.initializer;
  }
  return undefined;
}

/** The arguments of the function around a node, at each of its calls in the same file. */
function calls(node: ts.Node, file: ts.SourceFile): Bindings[] {
  for (let scope: ts.Node = node; scope; scope = scope.parent) {
    if (!ts.isFunctionLike(scope)) continue;
    const named = scope.name ?? (ts.isVariableDeclaration(scope.parent) ? scope.parent.name : undefined);
    if (!named || scope.parameters.length === 0) continue;
    const { parameters } = scope;
    const made = all(file, ts.isCallExpression).filter(({ expression }) => expression.getText() === named.getText());
    const bindings = made.map(
      (call) =>
        new Map(
          parameters.flatMap((parameter, position): [string, ts.Expression][] => {
            const value = call.arguments[position] ?? parameter.initializer;
            return value ? [[parameter.name.getText(), value]] : [];
          }),
        ),
    );
    if (bindings.length > 0) return bindings;
  }
  return [new Map()];
}

/** Every `new Problem(status, type, detail)` of the source; without those whose type is known only at run time. */
export function problems(): Made[] {
  return readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('spec') && !name.startsWith('generated'))
    .flatMap((name) => {
      const file = ts.createSourceFile(
        name,
        readFileSync(path.join('src', name), 'utf8'),
        ts.ScriptTarget.Latest,
        true,
      );
      const heirs = all(file, ts.isClassDeclaration).filter((each) => /extends Problem\b/.test(each.getText()));
      const made = [
        ...all(file, ts.isNewExpression).filter(({ expression }) => expression.getText() === 'Problem'),
        ...heirs
          .flatMap((heir) => all(heir, ts.isCallExpression))
          .filter((call) => call.expression.getText() === 'super'),
      ];
      return made.flatMap((each) => [
        ...tableOf(each.arguments ?? []),
        ...calls(each, file).flatMap((bindings) => {
          const [status, type, detail] = [0, 1, 2].map((place) => textsOf(each.arguments?.[place], bindings));
          return (type ?? []).map((text) => ({ type: text, status: status?.[0] ?? ANY, detail: detail?.[0] ?? ANY }));
        }),
      ]);
    })
    .filter(({ type }) => type !== ANY);
}

const unique = (texts: string[]): string[] => [...new Set(texts)].sort();

function problemRows(): string[][] {
  const made = problems();
  return unique(made.map(({ type }) => type)).map((type) => {
    const own = made.filter((each) => each.type === type);
    const said = unique(own.map(({ detail }) => detail).filter((detail) => detail !== ANY));
    const status = unique(own.map((each) => each.status).filter((each) => each !== ANY)).join(', ');
    return [codes([type]), status || '4xx', said.join(' Or: ')];
  });
}

const codeTable = (texts: readonly (readonly [code: string, text: string])[]): string =>
  table(
    ['code', 'meaning'],
    texts.map(([code, text]) => [codes([code]), text]),
  );

/** Placeholders for a field, a limit or a form in hints. */
const ANYTHING = { field: ANY, limit: ANY, expected: ANY, found: ANY } as unknown as Parameters<
  (typeof HINTS)['wrong-type']
>[0];

/** docs/reference/problems.md: the service's errors, and the codes of people and rows. */
export function problemsPage(): string {
  const hints = Object.entries(HINTS).map(([code, hint]) => [code, hint(ANYTHING)] as const);
  const people = Object.entries<Word>(PERSON_CODES).map(([code, { hint, action, why }]) => {
    return [code, action ? `${hint} Recommended: "${action}". ${why}` : `${hint}`] as const;
  });
  return `# Problems and codes

For the EHR's engineer. Errors are RFC 9457 problem details (\`application/problem+json\`). Branch on \`type\`, which is
\`urn:notebridge:problem:\` and a type of the table. Show \`detail\`: what is wrong, and what to do. \`pointer\` is the JSON
Pointer of the invalid field. With \`retryAfterSeconds\` (and the header \`Retry-After\`) the same request may succeed later.
In the table, \`…\` is a part that varies; in a type it is \`provider\` or \`client\`.

## Types

${table(['type', 'status', 'detail'], problemRows())}

## Codes of people

In \`sync.error.code\` of a provider or a client, and in \`code\` of rows and events about them.

${codeTable(people)}

## Codes of rejected rows

In \`code\` of an import's row, with \`field\` and \`hint\`.

${codeTable(hints)}
`;
}
