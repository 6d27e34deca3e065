# SPDX-License-Identifier: MIT
# Completion in fish of sdma, which says itself what may follow: install this file in a folder of fish_complete_path.
function __sdma_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] --complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        string join \n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c sdma -f -a '(__sdma_complete)'
