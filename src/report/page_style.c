/* The style sheet of the page: light and dark by the reader's own setting, and on paper. */
#include "report/parts.h"

const char report_style[] =
	":root{color-scheme:light "
	"dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d1d9e0;--soft:#f4f6f8;--good:#1a7f37;--bad:#c62828;--off:#8a6100}@media(prefers-color-scheme:dark){:root{--bg:#0f1318;--fg:#e3e8ee;--dim:#98a3af;--line:#323a44;--soft:#181e25;--good:#4cc26a;--bad:#ff7b72;--off:#dfae3c}}*{box-sizing:border-box}body{margin:0 "
	"auto;max-width:64rem;padding:1.5rem 1rem 4rem;background:var(--bg);color:var(--fg);font:15px/1.5 "
	"system-ui,sans-serif}h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 "
	".6rem}h3{font-size:1rem;margin:1.4rem 0 "
	".3rem}.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.off{color:var(--off)}.badge{border:1px "
	"solid;border-radius:1rem;padding:.1rem "
	".7rem;font-size:.9rem;margin-left:.6rem;vertical-align:middle}.cause{border-left:4px solid "
	"var(--bad);background:var(--soft);padding:.6rem "
	".9rem;overflow-wrap:anywhere}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;padding:.25rem "
	".7rem .25rem 0;border-bottom:1px solid "
	"var(--line);vertical-align:top;overflow-wrap:anywhere}th{color:var(--dim);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:normal}pre{background:var(--soft);padding:.8rem;overflow-x:auto;font:13px/1.45 "
	"ui-monospace,monospace}svg{width:100%;height:auto;display:block}.swatch{width:.7rem;display:inline-block;margin-right:.4rem}svg "
	"text{fill:var(--dim);font:11px "
	"system-ui,sans-serif}.g{stroke:var(--line);stroke-width:1;fill:none}.l{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}.s0{stroke:#2f6fdb;color:#2f6fdb}.s1{stroke:#d9730d;color:#d9730d}.s2{stroke:#2a9d4a;color:#2a9d4a}.s3{stroke:#c2378f;color:#c2378f}.s4{stroke:#7a5ad9;color:#7a5ad9}.s5{stroke:#12939a;color:#12939a}.s6{stroke:#b8860b;color:#b8860b}.s7{stroke:#8a8f98;color:#8a8f98}.f0{fill:#8a8f98}.f1{fill:#d9730d}.f2{fill:#b8860b}.f3{fill:#2f6fdb}.f4{fill:#7a5ad9}.f5{fill:#12939a}.key{display:inline-block;width:.8rem;height:.2rem;background:currentColor;margin-right:.4rem;vertical-align:middle}details>summary{cursor:pointer;font-weight:600;margin:2.2rem "
	"0 .6rem}@media print{:root{color-scheme:light}body{max-width:none}.scroll{overflow:visible}}";
