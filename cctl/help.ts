import type { CctlCommand } from "./context.ts";
import { globalFlags } from "./context.ts";
import type { FlagSpec } from "./arguments.ts";

export function overview(commands: readonly CctlCommand[], others: readonly (readonly [string, string])[]): string {
  const rows = [
    ...commands.map(({ words, operands, summary }) => [`${words.join(" ")} ${operands}`.trim(), summary] as const),
    ...others,
  ];
  const width = Math.max(...rows.map(([usage]) => usage.length));
  const lines = rows.map(([usage, summary]) => `  ${usage.padEnd(width)}  ${summary}`);
  return `usage: cctl COMMAND\n\n${lines.join("\n")}\n\n${flagLines(globalFlags)}\n`;
}

export function commandHelp({ words, operands, summary, flags }: CctlCommand): string {
  const usage = ["cctl", ...words, operands].filter((part) => part !== "").join(" ");
  const own = flags.length === 0 ? "" : `${flagLines(flags)}\n`;
  return `usage: ${usage}${flags.length === 0 ? "" : " [FLAG…]"}\n\n${summary}\n\n${own}${flagLines(globalFlags)}\n`;
}

function flagLines(flags: readonly FlagSpec[]): string {
  const rows = flags.map(({ name, short, value, help }) => {
    const dashes = `${short === undefined ? "    " : `-${short}, `}--${name}`;
    return [value === undefined ? dashes : `${dashes} ${value}`, help] as const;
  });
  const width = Math.max(...rows.map(([usage]) => usage.length));
  return rows.map(([usage, help]) => `  ${usage.padEnd(width)}  ${help}`).join("\n");
}

/** Words only: what follows a command is files and addresses, which the shells complete by themselves. */
export function completion(
  shell: string,
  commands: readonly CctlCommand[],
  others: readonly string[],
): string | undefined {
  const first = [...new Set([...commands.map(({ words }) => words[0] ?? ""), ...others])].sort();
  const longer = commands.filter(({ words }) => words.length > 1);
  const second = [...new Set(longer.map(({ words }) => words[0] ?? ""))].map((word) => {
    const rest = longer.filter(({ words }) => words[0] === word).map(({ words }) => words[1] ?? "");
    return `        ${word}:2) COMPREPLY=($(compgen -W "${rest.join(" ")}" -- "$word")) ;;`;
  });
  const flags = [
    ...new Set([...commands.flatMap((command) => command.flags), ...globalFlags].map(({ name }) => `--${name}`)),
  ];
  switch (shell) {
    case "bash":
      return `_cctl() {
  local word=\${COMP_WORDS[COMP_CWORD]}
  case $word in
    -*) COMPREPLY=($(compgen -W "${flags.join(" ")}" -- "$word")) ;;
    *)
      case \${COMP_WORDS[1]}:$COMP_CWORD in
        *:1) COMPREPLY=($(compgen -W "${first.join(" ")}" -- "$word")) ;;
${second.join("\n")}
        *) COMPREPLY=($(compgen -f -- "$word")) ;;
      esac ;;
  esac
}
complete -F _cctl cctl
`;
    case "zsh":
      return `#compdef cctl
_arguments '1:command:(${first.join(" ")})' '*:argument:_files'
`;
    case "fish":
      return `${first.map((word) => `complete -c cctl -n __fish_use_subcommand -f -a ${word}`).join("\n")}\n${flags
        .map((flag) => `complete -c cctl -l ${flag.slice(2)}`)
        .join("\n")}\n`;
    default:
      return undefined;
  }
}
