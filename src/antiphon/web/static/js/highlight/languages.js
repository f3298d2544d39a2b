// The languages that code is highlighted in: their names, and rules for what their texts are made of. Pure.
//
// A rule is [kind, pattern]. The patterns of a language are tried together at each place, and each takes time in
// proportion to what it matches: a pattern that may not find its end takes the rest of its line or of the text.

const words = (text) => new Set(text.split(" "));

const END = "(?![\\s\\S])";
const NUMBER = "\\b(?:0[xX][\\da-fA-F_]+|0[bBoO][\\d_]+|\\d[\\d_]*(?:\\.\\d[\\d_]*)?(?:[eE][+-]?\\d+)?)[a-zA-Z]{0,3}\\b";
// These match to their end whatever follows, so nothing is tried twice.
const DOUBLE = '"(?:[^"\\\\\\n]|\\\\[\\s\\S]?)*(?:"|$)';
const SINGLE = "'(?:[^'\\\\\\n]|\\\\[\\s\\S]?)*(?:'|$)";
const BLOCK = `/\\*[\\s\\S]*?(?:\\*/|${END})`;
const SLASHES = "//[^\\n]*";
const HASHES = "#[^\\n]*";
const WORD = "[A-Za-z_$][\\w$]*";

const C_LIKE = "if else for while do switch case default break continue return goto struct enum union typedef "
  + "static const volatile extern inline sizeof class public private protected virtual override final new delete "
  + "this super throw throws try catch finally namespace using template typename operator friend import package "
  + "interface extends implements abstract synchronized instanceof explicit constexpr auto async await in is as "
  + "var let foreach readonly sealed partial get set yield lock unsafe ref out params where base event delegate "
  + "fun val when object companion data open suspend lateinit by init constructor internal record permits";
const C_TYPES = "int long short char float double void bool boolean byte unsigned signed size_t string String "
  + "Integer Object List Map Set vector std wchar_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t "
  + "int64_t decimal dynamic Int Long Double Boolean Unit Any";
const VALUES = "true false null nullptr None True False nil undefined NaN Infinity self this cls";

const C = {
  rules: [["comment", `${SLASHES}|${BLOCK}`], ["string", `${DOUBLE}|${SINGLE}`],
    ["meta", "^[ \\t]*#[ \\t]*[a-z]+\\b|@[A-Za-z_]\\w*"], ["number", NUMBER], ["word", WORD]],
  keywords: words(C_LIKE), types: words(C_TYPES), values: words(VALUES),
};
const GO = {
  rules: [["comment", `${SLASHES}|${BLOCK}`], ["string", `${DOUBLE}|${SINGLE}|\`[^\`]*(?:\`|${END})`],
    ["number", NUMBER], ["word", WORD]],
  keywords: words("break case chan const continue default defer else fallthrough for func go goto if import "
    + "interface map package range return select struct switch type var"),
  types: words("bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint "
    + "uint8 uint16 uint32 uint64 uintptr any"),
  values: words("true false nil iota"),
};
const RUST = {
  rules: [["comment", `${SLASHES}|${BLOCK}`], ["string", `b?${DOUBLE}|b?'(?:[^'\\\\\\n]|\\\\[^\\n]{1,8})'`],
    ["meta", "#!?\\[[^\\]\\n]*\\]?|'[a-z_]\\w*"], ["number", NUMBER], ["word", `${WORD}!?`]],
  keywords: words("as async await break const continue crate dyn else enum extern fn for if impl in let loop match "
    + "mod move mut pub ref return static struct super trait type unsafe use where while"),
  types: words("bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize String Vec Option Result "
    + "Box Rc Arc Self Some None Ok Err"),
  values: words("true false self"),
};
const PYTHON = {
  rules: [["comment", HASHES],
    ["string", `[rRbBfFuU]{0,2}(?:"""[\\s\\S]*?(?:"""|${END})|'''[\\s\\S]*?(?:'''|${END})|${DOUBLE}|${SINGLE})`],
    ["meta", "^[ \\t]*@[\\w.]+"], ["number", NUMBER], ["word", WORD]],
  keywords: words("and as assert async await break case class continue def del elif else except finally for from "
    + "global if import in is lambda match nonlocal not or pass raise return try type while with yield"),
  types: words("int str float bool bytes list dict set tuple object type frozenset complex Any Callable Iterable "
    + "Iterator Mapping Sequence Optional Union Exception ValueError TypeError KeyError"),
  values: words("True False None self cls"),
};
const JS = {
  rules: [["comment", `${SLASHES}|${BLOCK}`],
    ["string", `${DOUBLE}|${SINGLE}|\`(?:[^\`\\\\]|\\\\[\\s\\S]?)*(?:\`|${END})`
      + "|/(?<=(?:^|[=(,:;!&|?{}\\[])[ \\t]{0,9}/)(?![*/])(?:[^/\\\\\\n]|\\\\.)+/[a-z]*"],
    ["meta", "@[A-Za-z_]\\w*"], ["number", NUMBER], ["word", WORD]],
  keywords: words("abstract as async await break case catch class const continue debugger declare default delete do "
    + "else enum export extends finally for from function get if implements import in infer instanceof interface "
    + "is keyof let namespace new of private protected public readonly return satisfies set static super switch "
    + "throw try type typeof var void while with yield"),
  types: words("any boolean bigint never number object string symbol unknown Array Map Set Promise Record Partial "
    + "Date Error RegExp Object String Number Boolean"),
  values: words(VALUES),
};
const SHELL = {
  rules: [["comment", "(?<![\\w$\\\\{}])#[^\\n]*"],
    ["string", `"(?:[^"\\\\]|\\\\[\\s\\S]?)*(?:"|${END})|'[^']*(?:'|${END})`],
    ["value", "\\$(?:\\{[^}\\n]*\\}?|[A-Za-z_]\\w*|[\\d@*#?$!-])"], ["property", "(?<=^|\\s)--?[A-Za-z][\\w-]*"],
    ["number", "\\b\\d+\\b"], ["word", "[A-Za-z_][\\w-]*"]],
  keywords: words("if then else elif fi for while until do done case esac in function return local export readonly "
    + "declare set unset shift break continue exit trap source eval exec select time"),
  types: words("echo cd ls cat grep sed awk find mkdir rm cp mv touch chmod chown curl wget git npm npx pnpm yarn "
    + "python python3 pip node make docker sudo apt test printf read xargs sort head tail tar ssh cargo go uv"),
  values: words("true false"),
};
const SQL = {
  rules: [["comment", `--[^\\n]*|${BLOCK}`], ["string", `'(?:[^']|'')*(?:'|${END})|"[^"\\n]*(?:"|$)`],
    ["number", NUMBER], ["word", "[A-Za-z_]\\w*"]],
  anyCase: true,
  keywords: words("select from where and or not in is null like between join left right inner outer full cross on as "
    + "order by group having limit offset insert into values update set delete create table index view drop alter "
    + "add column primary key foreign references unique default check constraint begin commit rollback union all "
    + "distinct case when then else end exists with recursive if returning pragma explain trigger virtual using "
    + "asc desc conflict do nothing replace over partition"),
  types: words("int integer bigint smallint text varchar char real float double numeric decimal boolean date time "
    + "timestamp blob json jsonb uuid serial"),
  values: words("true false null"),
};
const JSON_LIKE = {
  rules: [["comment", `${SLASHES}|${BLOCK}`], ["string", DOUBLE],
    ["number", `-?${NUMBER}`], ["word", "[A-Za-z]+"]],
  keywords: words(""), types: words(""), values: words("true false null"), keys: true,
};
const CSS = {
  rules: [["comment", `${BLOCK}`], ["string", `${DOUBLE}|${SINGLE}`], ["keyword", "@[\\w-]+|!important"],
    ["value", "#[\\da-fA-F]{3,8}\\b"], ["number", "-?\\b\\d[\\d.]*(?:%|[a-z]{1,4}\\b)?"],
    ["property", "--[\\w-]+|[a-z-]{1,40}(?=[ \\t]{0,9}:[^{\\n]{0,200}(?:;|$))"], ["tag", "[.#&][A-Za-z_][\\w-]*|::?[a-z-]+"],
    ["function", "[a-z-]{1,40}(?=\\()"], ["plain", "[A-Za-z][\\w-]*"]],
};
const YAML = {
  rules: [["comment", "(?<=^|\\s)#[^\\n]*"], ["property", "^[ \\t]*(?:- +)?[\\w./\"'-][^\\n:#]{0,80}:(?=\\s|$)"],
    ["string", `${DOUBLE}|${SINGLE}`], ["meta", "^---$|^\\.\\.\\.$|[&*!][\\w!-]+"], ["number", NUMBER],
    ["word", "[A-Za-z_][\\w-]*"]],
  keywords: words(""), types: words(""), values: words("true false null yes no on off"),
};
const TOML = {
  rules: [["comment", "[#;][^\\n]*"], ["tag", "^[ \\t]*\\[{1,2}[^\\]\\n]*\\]{0,2}"],
    ["property", "^[ \\t]*[\\w.\"'-]+(?=[ \\t]*=)"],
    ["string", `"""[\\s\\S]*?(?:"""|${END})|${DOUBLE}|${SINGLE}`], ["number", NUMBER], ["word", "[A-Za-z_][\\w-]*"]],
  keywords: words(""), types: words(""), values: words("true false"),
};
const MARKUP = {
  rules: [["comment", `<!--[\\s\\S]*?(?:-->|${END})`], ["meta", "<[!?][^>\\n]*>?|&[#\\w]{1,12};"],
    ["tag", "</?[A-Za-z][\\w:.-]*|/?>"], ["property", "[A-Za-z_@:][\\w:.@-]*(?==[\"'{])"],
    ["string", "(?<==)(?:\"[^\"\\n]*(?:\"|$)|'[^'\\n]*(?:'|$))"], ["plain", "[A-Za-z_@:][\\w:.@-]*"]],
};
const MARKDOWN = {
  rules: [["heading", "^#{1,6} [^\\n]*"], ["string", "^(?:```|~~~)[^\\n]*|`[^`\\n]+`"],
    ["keyword", "^[ \\t]*(?:[-*+]|\\d+[.)]) |^[ \\t]*>+"], ["property", "\\[[^\\]\\n]{1,200}\\]\\([^)\\n]{1,400}\\)"],
    ["value", "\\*\\*[^*\\n]{1,200}\\*\\*"], ["comment", `<!--[\\s\\S]*?(?:-->|${END})`]],
};
const DIFF = {
  rules: [["heading", "^(?:diff|index|---|\\+\\+\\+|rename|new file|deleted file|similarity)(?= |$)[^\\n]*"],
    ["meta", "^@@[^\\n]*"], ["inserted", "^\\+[^\\n]*"], ["deleted", "^-[^\\n]*"]],
};

const NAMES = [
  [PYTHON, "python py python3 py3 pyi pyw sage"],
  [JS, "javascript js mjs cjs jsx typescript ts tsx mts cts node"],
  [JSON_LIKE, "json jsonc json5 jsonl ndjson application/json webmanifest"],
  [SHELL, "shell sh bash zsh fish console shellsession terminal ksh dockerfile makefile mk"],
  [C, "c h cc cpp cxx hpp hh c++ java kotlin kt kts scala swift cs csharp c# objc m mm php dart glsl proto zig d"],
  [GO, "go golang"],
  [RUST, "rust rs"],
  [SQL, "sql sqlite postgres postgresql mysql psql plsql"],
  [CSS, "css scss less sass"],
  [YAML, "yaml yml"],
  [TOML, "toml ini cfg conf properties env editorconfig"],
  [MARKUP, "html htm xml svg xhtml vue svelte rss plist"],
  [MARKDOWN, "markdown md mdx"],
  [DIFF, "diff patch udiff"],
];
const BY_NAME = new Map(NAMES.flatMap(([language, names]) => names.split(" ").map((name) => [name, language])));
const SPECIAL = new Map([["makefile", SHELL], ["dockerfile", SHELL], [".bashrc", SHELL], [".env", TOML]]);

/** The language of a name, such as the info of a fence; null if it is unknown. */
export function languageNamed(name) {
  return BY_NAME.get(String(name ?? "").toLowerCase().replace(/^language-|^text\/(?:x-)?/, "")) ?? null;
}

/** The language of a file, by its name; null if it is unknown. */
export function languageOf(path) {
  const name = String(path ?? "").split(/[\\/]/).at(-1).toLowerCase();
  return SPECIAL.get(name) ?? (name.includes(".") ? (BY_NAME.get(name.split(".").at(-1)) ?? null) : null);
}
